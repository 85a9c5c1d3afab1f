/**
 * The effect of a delete on the row in its table. `hard`: the row is removed. `soft`: the row keeps the values of its
 * last version, and `_deleted_at` holds the time of the delete. The feed, the history and the tombstone are the same in
 * both modes.
 */
export type DeleteMode = 'hard' | 'soft'
