import type { ChangeAction } from '../../contract/index.ts'
import type { RowStatus } from '../kit/resolve-landing.ts'

/** Codes of these names in the file. */
export const STATUS_CODES: Record<RowStatus, number> = { live: 0, deleted: 1, swept: 2 }
export const STATUS_BY_CODE: readonly RowStatus[] = ['live', 'deleted', 'swept']
export const ACTION_CODES: Record<ChangeAction, number> = { created: 1, updated: 2, deleted: 3 }
export const ACTION_BY_CODE: Record<1 | 2 | 3, ChangeAction> = { 1: 'created', 2: 'updated', 3: 'deleted' }
