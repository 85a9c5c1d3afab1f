// The worker that `tidemark init` writes, for a run from a checkout. Its store is in this folder.
export { default } from '../../templates/worker/worker.ts'
