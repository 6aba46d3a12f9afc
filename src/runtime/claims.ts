/**
 * How a runtime comes by the lease of a tree, and how it gives it back (REC-2).
 *
 * - L1 A lease that may be this runtime's yet (lost, not released, or claimed without an answer) is taken over by its next claim:
 *   nobody is locked out of a tree by himself. A commit of before is refused all the same, by its epoch.
 */
import { CoppiceError } from "../protocol/errors.ts";
import type { TreeId } from "../protocol/ids.ts";
import type { ProcessIdentity, ProvenDead } from "../protocol/process-identity.ts";
import { inSpan } from "../platform/telemetry.ts";
import type { Shared } from "../control/shared.ts";
import type { Lease, Store } from "../store/port.ts";

export interface ClaimPorts {
  readonly store: Store;
  readonly token: () => string;
  readonly leaseMs: number;
  readonly owner: () => ProcessIdentity;
  readonly isDead: ProvenDead;
  readonly shared: Pick<Shared, "tracer" | "redact">;
}

export class Claims {
  readonly #ports: ClaimPorts;
  readonly #tokens = new Map<TreeId, string>();

  constructor(ports: ClaimPorts) {
    this.#ports = ports;
  }

  /** @throws RejectedError `NOT_OWNER` while another process holds it. */
  async claim(treeId: TreeId): Promise<Lease> {
    return inSpan(this.#ports.shared, "thread.lease", { "coppice.tree.id": treeId }, () =>
      this.#claim(treeId),
    );
  }

  async #claim(treeId: TreeId): Promise<Lease> {
    const { store, leaseMs, owner, isDead } = this.#ports;
    const token = this.#tokens.get(treeId) ?? this.#ports.token();
    // Before it is asked for: an answer may be lost.
    this.#tokens.set(treeId, token);
    try {
      const lease = await store.claim({ treeId, token, owner: owner(), leaseMs, provenDead: isDead });
      this.#tokens.delete(treeId);
      return lease;
    } catch (error) {
      if (CoppiceError.is(error) && error.code === "NOT_OWNER") this.#tokens.delete(treeId);
      throw error;
    }
  }

  /** One that is another's by now is no matter. @throws what the store fails with. */
  async release(lease: Lease): Promise<void> {
    try {
      await this.#ports.store.release(lease, { abandon: true });
    } catch (error) {
      if (CoppiceError.is(error) && error.code === "FENCED") return;
      this.lost(lease);
      throw error;
    }
  }

  lost({ treeId, token }: Lease): void {
    this.#tokens.set(treeId, token);
  }
}
