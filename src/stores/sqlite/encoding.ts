import type { Action } from '../../contract/index.ts'
import type { RowStatus } from '../kit/judge.ts'

/** How the file spells what the code names. */
export const STATUS: Record<RowStatus, number> = { live: 0, deleted: 1, swept: 2 }
export const STATUS_OF: readonly RowStatus[] = ['live', 'deleted', 'swept']
export const ACTION: Record<Action, number> = { created: 1, updated: 2, deleted: 3 }
export const ACTION_OF: Record<1 | 2 | 3, Action> = { 1: 'created', 2: 'updated', 3: 'deleted' }
