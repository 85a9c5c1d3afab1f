/**
 * What a delete does to the row in its table. `hard`: the row is removed. `soft`: the row stays with the values of its last version,
 * and `_deleted_at` says when it was deleted. The feed, the history and the tombstone are the same in both.
 */
export type DeleteMode = 'hard' | 'soft'
