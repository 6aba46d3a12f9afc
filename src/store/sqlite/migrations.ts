/**
 * The schema, as the steps that lead to it. A step that was released is never changed: files have had it.
 *
 * Bodies stand in rowid tables: a clustered key would split their pages at every insert. Partial indexes hold only what
 * is unread, open or pending, so that they stay small for the life of a tree. Threads and trees have numbers
 * (`threads.ts`).
 */
/** In order; a file of version `n` has had the first `n` of them. */
export const MIGRATIONS: readonly string[] = [
  `
  CREATE TABLE threads (number INTEGER PRIMARY KEY, id TEXT NOT NULL UNIQUE) STRICT;
  CREATE TABLE trees (id TEXT PRIMARY KEY, body TEXT NOT NULL) STRICT;
  CREATE TABLE leases (id TEXT PRIMARY KEY, body TEXT NOT NULL) STRICT;

  CREATE TABLE agents (
    number INTEGER PRIMARY KEY, id TEXT NOT NULL, tree INTEGER NOT NULL, path TEXT NOT NULL, parent INTEGER,
    token TEXT NOT NULL, open INTEGER NOT NULL, input INTEGER NOT NULL, cached INTEGER NOT NULL,
    output INTEGER NOT NULL, reasoning INTEGER NOT NULL, cost REAL, complete INTEGER NOT NULL, body TEXT NOT NULL
  ) STRICT;
  CREATE UNIQUE INDEX agents_path ON agents (tree, path);
  CREATE INDEX agents_token ON agents (token);
  CREATE INDEX agents_parent ON agents (parent) WHERE parent IS NOT NULL;

  CREATE TABLE mail (
    id TEXT PRIMARY KEY, tree INTEGER NOT NULL, box INTEGER NOT NULL, seq INTEGER NOT NULL,
    unread INTEGER NOT NULL, ready INTEGER NOT NULL, arrival INTEGER NOT NULL, bytes INTEGER NOT NULL,
    created_at REAL NOT NULL, author_key TEXT, run_id TEXT, body TEXT NOT NULL
  ) STRICT;
  CREATE INDEX mail_box ON mail (box, unread, seq);
  CREATE INDEX mail_ready ON mail (tree) WHERE ready = 1;
  CREATE INDEX mail_arrival ON mail (tree) WHERE arrival = 1;
  CREATE INDEX mail_run ON mail (run_id) WHERE run_id IS NOT NULL;
  CREATE UNIQUE INDEX mail_key ON mail (author_key) WHERE author_key IS NOT NULL;
  CREATE TABLE mailboxes (
    box INTEGER PRIMARY KEY, last_seq INTEGER NOT NULL, unread INTEGER NOT NULL, unread_bytes INTEGER NOT NULL,
    triggers INTEGER NOT NULL, reserved_messages INTEGER NOT NULL, reserved_bytes INTEGER NOT NULL
  ) STRICT;
  CREATE TABLE unreadable_bodies (id TEXT PRIMARY KEY, body ANY) STRICT;

  CREATE TABLE works (
    id TEXT PRIMARY KEY, tree INTEGER NOT NULL, executor INTEGER NOT NULL, requester INTEGER, open INTEGER NOT NULL,
    body TEXT NOT NULL
  ) STRICT;
  CREATE INDEX works_tree ON works (tree);
  CREATE INDEX works_executor ON works (executor);
  CREATE INDEX works_open ON works (executor) WHERE open = 1;
  CREATE INDEX works_asked ON works (requester) WHERE open = 1;
  CREATE TABLE work_parents (parent TEXT NOT NULL, work_id TEXT NOT NULL, PRIMARY KEY (parent, work_id))
    STRICT, WITHOUT ROWID;

  CREATE TABLE runs (
    id TEXT PRIMARY KEY, tree INTEGER NOT NULL, thread INTEGER NOT NULL, open INTEGER NOT NULL, body TEXT NOT NULL
  ) STRICT;
  CREATE INDEX runs_thread ON runs (thread);
  CREATE INDEX runs_open ON runs (tree) WHERE open = 1;

  CREATE TABLE items (thread INTEGER NOT NULL, position INTEGER NOT NULL, body TEXT NOT NULL) STRICT;
  CREATE UNIQUE INDEX items_position ON items (thread, position);
  CREATE TABLE events (tree INTEGER NOT NULL, seq INTEGER NOT NULL, body TEXT NOT NULL) STRICT;
  CREATE UNIQUE INDEX events_seq ON events (tree, seq);

  CREATE TABLE waits (
    id TEXT PRIMARY KEY, tree INTEGER NOT NULL, thread INTEGER NOT NULL, run_id TEXT NOT NULL,
    open INTEGER NOT NULL, deadline REAL NOT NULL, body TEXT NOT NULL
  ) STRICT;
  CREATE INDEX waits_run ON waits (run_id);
  CREATE INDEX waits_open ON waits (thread) WHERE open = 1;
  CREATE INDEX waits_deadline ON waits (tree, deadline) WHERE open = 1;
  CREATE TABLE wait_works (work_id TEXT NOT NULL, wait_id TEXT NOT NULL, PRIMARY KEY (work_id, wait_id))
    STRICT, WITHOUT ROWID;
  CREATE TABLE requests (id TEXT PRIMARY KEY, thread INTEGER NOT NULL, open INTEGER NOT NULL, body TEXT NOT NULL)
    STRICT;
  CREATE INDEX requests_open ON requests (thread) WHERE open = 1;

  CREATE TABLE transfers (
    id TEXT PRIMARY KEY, tree INTEGER NOT NULL, work_id TEXT, type TEXT NOT NULL, target INTEGER NOT NULL,
    pending INTEGER NOT NULL, body TEXT NOT NULL
  ) STRICT;
  CREATE INDEX transfers_tree ON transfers (tree);
  CREATE INDEX transfers_work ON transfers (work_id, type) WHERE work_id IS NOT NULL;
  CREATE INDEX transfers_pending ON transfers (target) WHERE pending = 1;
  CREATE TABLE handoffs (id TEXT PRIMARY KEY, body TEXT NOT NULL) STRICT;
  CREATE TABLE artifacts (id TEXT PRIMARY KEY, body TEXT NOT NULL) STRICT;

  CREATE TABLE receipts (id TEXT PRIMARY KEY, body TEXT NOT NULL) STRICT;
  CREATE TABLE commands (id TEXT PRIMARY KEY, tree INTEGER NOT NULL, pending INTEGER NOT NULL, body TEXT NOT NULL)
    STRICT;
  CREATE INDEX commands_pending ON commands (tree) WHERE pending = 1;
  CREATE TABLE process_groups (id TEXT PRIMARY KEY, tree INTEGER NOT NULL, body TEXT NOT NULL) STRICT;
  CREATE INDEX process_groups_tree ON process_groups (tree);
  `,
  // Threads: what lists look for, and what records from before them lack. A row that cannot be read stays as it is.
  `
  ALTER TABLE trees ADD COLUMN payer INTEGER;
  CREATE INDEX trees_payer ON trees (payer) WHERE payer IS NOT NULL;

  ALTER TABLE agents ADD COLUMN state TEXT;
  ALTER TABLE agents ADD COLUMN workspace TEXT;
  ALTER TABLE agents ADD COLUMN lineage INTEGER;
  UPDATE agents SET
    state = body ->> '$.state', workspace = body ->> '$.config.workspace',
    body = json_set(body, '$.thread', NULL, '$.config.worktree', NULL)
    WHERE json_valid(body);
  CREATE INDEX agents_roots ON agents (parent) WHERE parent IS NULL;
  CREATE INDEX agents_workspace ON agents (workspace) WHERE parent IS NULL;
  CREATE INDEX agents_state ON agents (state) WHERE parent IS NULL;
  CREATE INDEX agents_workspace_state ON agents (workspace, state) WHERE parent IS NULL;
  CREATE INDEX agents_lineage ON agents (lineage) WHERE lineage IS NOT NULL;

  ALTER TABLE runs ADD COLUMN ordinal INTEGER;
  UPDATE runs SET
    ordinal = body ->> '$.ordinal',
    body = json_set(body,
      '$.binding', NULL, '$.delegatedFrom', NULL, '$.providerThreadId', NULL, '$.contextHandoffIds', json('[]'),
      '$.pins', json('[]'), '$.checkpoint', NULL, '$.nextContextRevision', NULL, '$.rolledBack', NULL, '$.history', NULL)
    WHERE json_valid(body);
  CREATE INDEX runs_ordinal ON runs (thread, ordinal);

  ALTER TABLE transfers ADD COLUMN source INTEGER;
  INSERT INTO threads (id) SELECT body ->> '$.sourceThreadId' FROM transfers WHERE json_valid(body)
    ON CONFLICT DO NOTHING;
  UPDATE transfers SET
    source = (SELECT number FROM threads WHERE threads.id = body ->> '$.sourceThreadId'),
    body = json_set(body,
      '$.sourcePoint.checkpointId', NULL, '$.sourcePoint.ordinal', 0, '$.sourcePoint.turnItemId', NULL,
      '$.sourcePoint.providerThreadRef', NULL, '$.sourcePoint.providerTurnRef', NULL,
      '$.sourceOutcome', NULL, '$.staleness', json('[]'), '$.intent', NULL, '$.staleBase', json('false'),
      '$.supersededBy', NULL)
    WHERE json_valid(body);
  CREATE INDEX transfers_source ON transfers (source);
  CREATE INDEX transfers_target ON transfers (target);

  ALTER TABLE handoffs ADD COLUMN thread INTEGER;
  INSERT INTO threads (id) SELECT body ->> '$.threadId' FROM handoffs WHERE json_valid(body)
    ON CONFLICT DO NOTHING;
  UPDATE handoffs SET
    thread = (SELECT number FROM threads WHERE threads.id = body ->> '$.threadId'),
    body = json_set(body,
      '$.sourceThreadId', (
        SELECT threads.id FROM transfers JOIN threads ON number = source
          WHERE transfers.id = handoffs.body ->> '$.transferId'),
      '$.strategy', 'full_thread_summary', '$.fromProviderThreadIds', json('[]'), '$.toProviderThreadId', NULL,
      '$.coveredRuns', json('[]'), '$.coveredRunOrdinals', NULL,
      '$.payload', json('{"sections":[],"items":0,"omittedItemIds":[],"checkpointRef":null,"snapshotRef":null}'),
      '$.budget', json('{"limit":0,"used":0,"unit":"bytes"}'),
      '$.createdByProvider', NULL, '$.supersededBy', NULL, '$.updatedAt', body -> '$.createdAt')
    WHERE json_valid(body);
  CREATE INDEX handoffs_thread ON handoffs (thread);

  CREATE TABLE provider_threads (id TEXT PRIMARY KEY, thread INTEGER NOT NULL, body TEXT NOT NULL) STRICT;
  CREATE INDEX provider_threads_thread ON provider_threads (thread);
  CREATE TABLE snapshots (thread INTEGER NOT NULL, position INTEGER NOT NULL, body TEXT NOT NULL) STRICT;
  CREATE UNIQUE INDEX snapshots_position ON snapshots (thread, position);
  CREATE TABLE compactions (thread INTEGER NOT NULL, position INTEGER NOT NULL, body TEXT NOT NULL) STRICT;
  CREATE UNIQUE INDEX compactions_position ON compactions (thread, position);
  CREATE TABLE history (thread INTEGER NOT NULL, position INTEGER NOT NULL, body TEXT NOT NULL) STRICT;
  CREATE UNIQUE INDEX history_position ON history (thread, position);
  CREATE TABLE history_ids (
    thread INTEGER NOT NULL, id TEXT NOT NULL, position INTEGER NOT NULL, PRIMARY KEY (thread, id)
  ) STRICT, WITHOUT ROWID;
  CREATE TABLE drafts (id TEXT PRIMARY KEY, body TEXT NOT NULL) STRICT;
  `,
  // Children that are open are counted at each spawn.
  `
  CREATE INDEX agents_open_children ON agents (parent) WHERE parent IS NOT NULL AND open = 1;
  `,
  // A wall clock is measured from the oldest open work that was begun. It is no more spent for good, as it was before.
  `
  ALTER TABLE works ADD COLUMN begun REAL;
  UPDATE works SET
    body = json_set(body, '$.begunAt', CASE
      WHEN body ->> '$.runsServed' > 0 AND json_type(body, '$.createdAt') IN ('integer', 'real')
        THEN body ->> '$.createdAt' END)
    WHERE json_valid(body);
  UPDATE works SET begun = body ->> '$.begunAt' WHERE open = 1 AND json_valid(body);
  CREATE INDEX works_begun ON works (tree, begun) WHERE begun IS NOT NULL;
  UPDATE trees SET
    body = json_set(body, '$.exhausted', (
      SELECT json_group_array(json(value)) FROM json_each(body, '$.exhausted')
        WHERE CASE type WHEN 'object' THEN value ->> '$.budget' <> 'wallClock' END))
    WHERE CASE WHEN json_valid(body) THEN json_type(body, '$.exhausted') = 'array' END;
  `,
  // A run names the turns of its provider that carried it; the record of a conversation would grow with each.
  `
  UPDATE runs SET body = json_set(body, '$.nativeTurns', json('[]')) WHERE json_valid(body);
  CREATE TABLE old_turns AS
    SELECT provider_threads.id AS conversation,
           CASE turn.type WHEN 'object' THEN turn.value ->> '$.ordinal' END AS ordinal,
           json_group_array(json(CASE
             WHEN turn.type = 'object' AND json_type(turn.value, '$.ref.nativeId') = 'text'
               THEN turn.value -> '$.ref' ELSE 'null' END)) AS refs
      FROM provider_threads,
           json_each(CASE WHEN json_valid(body) THEN body ELSE '{}' END, '$.turns') AS turn
      GROUP BY 1, 2 HAVING ordinal IS NOT NULL;
  CREATE INDEX old_turns_of ON old_turns (conversation, ordinal);
  UPDATE runs SET body = json_set(body, '$.nativeTurns', json(refs)) FROM old_turns
    WHERE json_valid(body) AND conversation = body ->> '$.providerThreadId'
      AND old_turns.ordinal = body ->> '$.ordinal';
  DROP TABLE old_turns;
  UPDATE provider_threads SET body = json_remove(body, '$.turns') WHERE json_valid(body);
  `,
  // What was looked for by walking through a thread, or through all that were forked of one.
  `
  ALTER TABLE runs ADD COLUMN history INTEGER;
  UPDATE runs SET history = CASE body ->> '$.history.level'
      WHEN 'complete' THEN 0 WHEN 'partial' THEN 1 WHEN 'final-only' THEN 2 WHEN 'unsupported' THEN 3 END
    WHERE json_valid(body);
  CREATE INDEX runs_history ON runs (thread, history) WHERE history IS NOT NULL;

  ALTER TABLE transfers ADD COLUMN taken REAL;
  ALTER TABLE transfers ADD COLUMN doubt INTEGER NOT NULL DEFAULT 0;
  UPDATE transfers SET
    taken = CASE WHEN body ->> '$.type' IN ('fork', 'subagent_spawn') THEN body ->> '$.createdAt' END,
    doubt = ifnull(pending = 1 AND body ->> '$.type' = 'fork' AND json_type(body, '$.intent') = 'object', 0)
    WHERE json_valid(body);
  CREATE INDEX transfers_taken ON transfers (source, taken) WHERE taken IS NOT NULL;
  CREATE INDEX transfers_doubt ON transfers (doubt) WHERE doubt = 1;

  ALTER TABLE provider_threads ADD COLUMN native TEXT;
  UPDATE provider_threads SET
    native = (body ->> '$.nativeThreadRef.driver') || ' ' || (body ->> '$.nativeThreadRef.nativeId')
    WHERE json_valid(body);
  CREATE INDEX provider_threads_native ON provider_threads (native) WHERE native IS NOT NULL;
  `,
  // Results that are on their way were looked for among all works ever asked under one.
  `
  ALTER TABLE works ADD COLUMN result_mail TEXT;
  UPDATE works SET result_mail = body ->> '$.resultMailId'
    WHERE CASE WHEN json_valid(body) THEN json_type(body, '$.resultPending') = 'true' END;
  CREATE INDEX works_result_mail ON works (requester, result_mail) WHERE result_mail IS NOT NULL;
  `,
  // Waits for threads were looked for among all open ones of a tree, at each poll.
  `
  ALTER TABLE waits ADD COLUMN threads INTEGER NOT NULL DEFAULT 0;
  UPDATE waits SET threads = 1
    WHERE CASE WHEN json_valid(body) THEN json_type(body, '$.threads') = 'array' END;
  CREATE INDEX waits_threads ON waits (tree) WHERE open = 1 AND threads = 1;
  `,
  // Who works in a worktree was looked for among all agents of a tree and all open threads.
  `
  CREATE INDEX agents_worked_in ON agents (workspace) WHERE workspace IS NOT NULL AND open = 1;
  `,
];
