export type Severity = 'error' | 'warning' | 'note'

interface FaultDefinition {
  readonly severity: Severity
  readonly todo: string
  /** The number in docs/reference/rules.md, for the titles of the tests; not shown to users. */
  readonly rule: string
}

/** Every fault that `check` detects. The codes are permanent, because `tidemark-ignore` comments use them. */
export const FAULTS = {
  'no-first-run': {
    severity: 'error',
    rule: 'N2',
    todo: 'The first call receives no state: begin with `const { … } = state ?? start`.',
  },
  fails: {
    severity: 'error',
    rule: 'invariant 9',
    todo: 'Read that page with `npx tidemark preview <sync>`, and fix the reported error.',
  },
  'page-malformed': {
    severity: 'error',
    rule: 'N1',
    todo: 'Return `{ changes, hasMore, nextState }`; `hasMore: true` requires a `nextState`.',
  },
  'state-not-json': {
    severity: 'error',
    rule: 'N19',
    todo: 'Keep plain JSON in the state: strings, finite numbers, objects and arrays. Store a Date as an ISO string and a Map as an object.',
  },
  'state-too-large': {
    severity: 'error',
    rule: 'N19',
    todo: 'Keep a cursor in the state, not the records that were read.',
  },
  'state-grows': {
    severity: 'warning',
    rule: 'N19',
    todo: 'Keep a cursor in the state, not the records that were read: the state is written with every page.',
  },
  'state-stuck': {
    severity: 'error',
    rule: 'NX7',
    todo: 'Advance `nextState` past the last record of the page. If many records share a timestamp, page by id as well: `keyset` or `search`.',
  },
  'state-lost': {
    severity: 'error',
    rule: 'N7',
    todo: 'Return `nextState` with the last page too; the next cycle starts there.',
  },
  'starts-over': {
    severity: 'warning',
    rule: 'N5',
    todo: "Start each cycle where the last one ended. If the source can only be read in full, use `mode: 'replace'`, which also detects deletions.",
  },
  'no-end': {
    severity: 'error',
    rule: 'invariant 9',
    todo: 'Find out how the source marks the last page, and set `hasMore` accordingly.',
  },
  'empty-pages': {
    severity: 'warning',
    rule: 'invariant 9',
    todo: 'An empty page usually is the end: set `hasMore` from the source’s own marker.',
  },
  'early-end': {
    severity: 'error',
    rule: 'N27',
    todo: 'Do not rely on that flag alone: a page is the last if the flag says so and the page is short, or if it is empty.',
  },
  'no-tie-break': {
    severity: 'warning',
    rule: 'N22',
    todo: 'Keep the id of the last record next to its timestamp and filter by both (`keyset`); otherwise records with equal timestamps at a page boundary are lost.',
  },
  'no-lag': {
    severity: 'error',
    rule: 'N76',
    todo: 'End every cycle at `context.cycle.startedAt` minus a lag of 10 to 60 seconds, in the query and in the state; otherwise records that appear later than their timestamp are missed.',
  },
  'missing-deletes': {
    severity: 'warning',
    rule: 'N87',
    todo: 'Use `worker.track`, or read deletions with `streams`. If records are never deleted, add `// tidemark-ignore <sync>: missing-deletes`.',
  },
  'no-upstream-time': {
    severity: 'warning',
    rule: 'NX13',
    todo: 'Set `upstreamUpdatedAt` to the source’s own timestamp of the record: it decides which of two versions is newer.',
  },
  'key-not-unique': {
    severity: 'error',
    rule: 'NX12',
    todo: 'Use a key that identifies one record: the id, or the id plus the field that makes it unique.',
  },
  'key-unstable': {
    severity: 'error',
    rule: 'NX12',
    todo: 'Use the source’s own id as the key. A counter, an index or a random value creates new rows on every read.',
  },
  'record-volatile': {
    severity: 'warning',
    rule: 'invariant 4',
    todo: 'Leave out fields that differ on every read, such as the request time or a signed URL; each difference is a change for every consumer.',
  },
  'page-unstable': {
    severity: 'warning',
    rule: 'N3',
    todo: 'Make a page depend only on the state and the source, and let the source sort it: the page may be read again after a crash.',
  },
  'page-too-large': {
    severity: 'warning',
    rule: 'NX17',
    todo: 'Request a few hundred records at a time; a page is held in memory and committed in one transaction.',
  },
  quarantined: {
    severity: 'warning',
    rule: 'XD24',
    todo: 'Fix the record conversion or the schema; quarantined records do not land.',
  },
  'reads-wall-clock': {
    severity: 'warning',
    rule: 'N76',
    todo: 'Use `context.clock` or `context.cycle.startedAt`: it is fixed for the cycle and the same after a crash.',
  },
  'reads-chance': {
    severity: 'warning',
    rule: 'N3',
    todo: 'Use `context.random`, or avoid randomness: a page that is read again must be the same.',
  },
  'unpaced-request': {
    severity: 'warning',
    rule: 'NX1',
    todo: 'Use `context.fetch`: it applies the pacer, the timeout and cancellation.',
  },
  'secret-in-code': {
    severity: 'error',
    rule: 'NX16',
    todo: 'Move it to .env, read it with `context.secrets.get(name)`, and rotate it, because it was in a file.',
  },
  unfinished: { severity: 'note', rule: 'invariant 9', todo: 'Raise --pages to see the end of the cycle.' },
  'nothing-read': {
    severity: 'note',
    rule: 'N1',
    todo: 'Record-level checks were skipped because no records were returned. Check again when the source has records.',
  },
} as const satisfies Record<string, FaultDefinition>

export type FaultCode = keyof typeof FAULTS

export interface Finding {
  readonly finding: FaultCode
  readonly severity: Severity
  /** The observation; never contains a state, a key or a record. */
  readonly seen: string
  readonly todo: string
}

export function createFinding(code: FaultCode, seen: string, severity?: Severity): Finding {
  const fault: FaultDefinition = FAULTS[code]
  return { finding: code, severity: severity ?? fault.severity, seen, todo: fault.todo }
}
