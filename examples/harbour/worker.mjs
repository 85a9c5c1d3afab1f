// The worker that `tidemark init` writes, run from a checkout. Its store stays in this folder.
export { default } from '../../templates/worker/worker.ts'
