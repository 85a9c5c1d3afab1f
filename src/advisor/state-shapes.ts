import type { StrategyName } from '../sources/kit/source-advice.ts'

/** Field name to type or nested shape. Fields that exist only within a cycle end with `?`. */
export interface StateShape {
  readonly [field: string]: string | StateShape
}

/** The state that each strategy passes from page to page. */
export const STATE_SHAPES: Readonly<Record<StrategyName, StateShape | null>> = {
  keyset: { cursorTimestamp: 'string | null', cursorId: 'string | null', 'untilMs?': 'number' },
  eventFeed: { cursor: 'string', cursorTime: 'string', 'cursorRank?': 'number' },
  search: { phase: "'delta' | 'deadlock'", cursorMs: 'number', 'untilMs?': 'number' },
  relay: { cursor: 'string | null', 'pace?': 'object' },
  relayNested: {
    cursor: 'string | null',
    'outerDone?': 'boolean',
    'nestedCursors?': 'Record<string, string>',
    'pace?': 'object',
  },
  token: { cursor: 'string | null' },
  pageNumber: { page: 'number', pass: 'object' },
  offset: { offset: 'number', pass: 'object' },
  frontier: {
    phase: "'forward' | 'backfill'",
    'headItemId?': 'string',
    'headOrder?': 'string | number',
    anchors: 'object',
    checkedAt: 'number',
    'pass?': 'object',
    'tailCursor?': 'string',
    tailComplete: 'boolean',
    'restartedAt?': 'number',
    'ending?': 'object',
  },
  whole: null,
  timestamp: { cursor: 'string | null', 'untilMs?': 'number' },
  archive: { 'listedMs?': 'number', 'untilMs?': 'number', 'cursor?': 'string | null' },
  window: { since: 'string | null', 'untilMs?': 'number', 'token?': 'string' },
}

/** Two streams in one cycle, each with its own state. */
export function streamsStateShape(changes: StrategyName, deletes: StrategyName): StateShape {
  return {
    states: { 'changes?': STATE_SHAPES[changes] ?? {}, 'deletes?': STATE_SHAPES[deletes] ?? {} },
    'reading?': "'changes' | 'deletes'",
    'tidemarks?': 'object',
  }
}
