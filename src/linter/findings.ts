export type Severity = 'error' | 'warning' | 'note'

interface FaultDefinition {
  readonly severity: Severity
  readonly todo: string
  /** As docs/reference/rules.md numbers it. */
  readonly rule: string
}

/** Every fault that `check` knows. The words are for ever: they stand in `tidemark-ignore` comments. */
export const FAULTS = {
  'no-first-run': { severity: 'error', rule: 'N2', todo: 'The very first call is given no state: begin with `const { … } = state ?? start`.' },
  fails: { severity: 'error', rule: 'invariant 9', todo: 'Ask for that page alone with `npx tidemark preview <sync>`, and mend what the message says.' },
  'page-malformed': { severity: 'error', rule: 'N1', todo: 'Return `{ changes, hasMore, nextState }`; with `hasMore: true` there must be a `nextState`.' },
  'state-not-json': { severity: 'error', rule: 'N19', todo: 'Keep plain JSON in the state: texts, finite numbers, objects and arrays; a Date as its ISO text, a Map as an object.' },
  'state-too-large': { severity: 'error', rule: 'N19', todo: 'Keep a position in the state, not what was read.' },
  'state-grows': { severity: 'warning', rule: 'N19', todo: 'Keep a position in the state, not what was read: it is written with every page.' },
  'state-stuck': { severity: 'error', rule: 'NX7', todo: 'Let `nextState` stand after the last record of the page. Where many share one time, go on by id: `keyset` or `search`.' },
  'state-lost': { severity: 'error', rule: 'N7', todo: 'Return the position with the last page as well; the next cycle begins there.' },
  'starts-over': { severity: 'warning', rule: 'N5', todo: 'Begin each cycle where the last one ended; a source that can only be read whole is `mode: \'replace\'`, which also finds deletions.' },
  'no-end': { severity: 'error', rule: 'invariant 9', todo: 'Find out how the source says that a page is the last, and set `hasMore` by that.' },
  'empty-pages': { severity: 'warning', rule: 'invariant 9', todo: 'An empty page is mostly the end: set `hasMore` by what the source says of it.' },
  'early-end': { severity: 'error', rule: 'N27', todo: 'Do not believe that flag alone: a page is the last when the source says so and the page is short, or when it is empty.' },
  'no-tie-break': { severity: 'warning', rule: 'N22', todo: 'Keep the id of the last record beside its time and filter by both (`keyset`); records of one time at a page border are lost otherwise.' },
  'no-lag': { severity: 'error', rule: 'N76', todo: 'End every cycle at `context.cycle.startedAt` minus a lag of 10 to 60 seconds, in the query and in the state; what shows later than its time is passed otherwise.' },
  'missing-deletes': { severity: 'warning', rule: 'N87', todo: 'Use `worker.track`, or read deletions with `streams`. Where nothing is ever deleted, say so: `// tidemark-ignore <sync>: missing-deletes`.' },
  'no-upstream-time': { severity: 'warning', rule: 'NX13', todo: 'Set `upstreamUpdatedAt` to the source’s own time of the record: it decides which of two syncs is newer.' },
  'key-not-unique': { severity: 'error', rule: 'NX12', todo: 'Take a key that names one record: the id, or the id with whatever tells its namesakes apart.' },
  'key-unstable': { severity: 'error', rule: 'NX12', todo: 'Take the source’s own id as key. A number of ours, a position or chance makes every reading new rows.' },
  'record-volatile': { severity: 'warning', rule: 'invariant 4', todo: 'Leave out what differs with every reading, such as the time of the request or a signed address; each is a change for every reader downstream.' },
  'page-unstable': { severity: 'warning', rule: 'N3', todo: 'Let a page depend on the state and the source alone, and have the source sort it: it may be asked for again after a crash.' },
  'page-too-large': { severity: 'warning', rule: 'NX17', todo: 'Ask for some hundred records at a time; a page is held in memory and landed in one transaction.' },
  quarantined: { severity: 'warning', rule: 'XD24', todo: 'Mend what the code says, or the schema; such records are kept aside and not landed.' },
  'reads-wall-clock': { severity: 'warning', rule: 'N76', todo: 'Take the time from `context.clock` or `context.cycle.startedAt`: only that is fixed for the cycle and the same after a crash.' },
  'reads-chance': { severity: 'warning', rule: 'N3', todo: 'Take chance from `context.random`, or do without: a page that is asked for again must be the same.' },
  'unpaced-request': { severity: 'warning', rule: 'NX1', todo: 'Ask with `context.fetch`: it keeps the pacer, the time limit and the signal to stop.' },
  'secret-in-code': { severity: 'error', rule: 'NX16', todo: 'Put it into .env, read it with `context.secrets.get(name)`, and have it renewed: it was in a file.' },
  unfinished: { severity: 'note', rule: 'invariant 9', todo: 'Raise --pages to see the end of the cycle.' },
  'nothing-read': { severity: 'note', rule: 'N1', todo: 'What shows only in records was not looked at. Check again when there is something to read.' },
} as const satisfies Record<string, FaultDefinition>

export type FaultCode = keyof typeof FAULTS

export interface Finding {
  readonly finding: FaultCode
  readonly severity: Severity
  /** What was seen; never a state, a key or a record. */
  readonly seen: string
  readonly todo: string
  readonly rule: string
}

export function createFinding(word: FaultCode, seen: string, severity?: Severity): Finding {
  const fault: FaultDefinition = FAULTS[word]
  return { finding: word, severity: severity ?? fault.severity, seen, todo: fault.todo, rule: fault.rule }
}
