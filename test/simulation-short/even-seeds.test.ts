/** Half of the seeds; the other half is beside it, so that both can run at once. */
import { simulationSuite } from "../support/simulation/suite.ts";

simulationSuite({ part: 0, of: 2, chunk: 25 });
