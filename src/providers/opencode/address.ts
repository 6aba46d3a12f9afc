/** The address of a server of OpenCode that somebody else runs: on this machine, and nothing in it but where it is. */
import { RejectedError } from "../../protocol/errors.ts";

const LOOPBACK = /^(localhost|127(\.\d{1,3}){3}|\[::1\])$/;

/** Its origin. @throws RejectedError `EXTERNAL_SERVER_URL_INVALID`. */
export function originOf(given: string): string {
  const url = URL.canParse(given) ? new URL(given) : null;
  if (url === null) throw invalid("it is no URL");
  if (url.protocol !== "http:" && url.protocol !== "https:") throw invalid("it is neither http nor https");
  if (url.username !== "" || url.password !== "")
    throw invalid("it holds credentials, which stand in the option `password`");
  if (!LOOPBACK.test(url.hostname)) throw invalid("it is not on this machine");
  if (url.pathname !== "/" || url.search !== "" || url.hash !== "")
    throw invalid("it holds more than scheme, host and port");
  return url.origin;
}

/** What was given may hold a password, and is not said again. */
function invalid(why: string): RejectedError {
  return new RejectedError(
    "EXTERNAL_SERVER_URL_INVALID",
    `The address of the OpenCode server cannot be used: ${why}. Give one such as http://127.0.0.1:4096.`,
    { reason: why },
  );
}
