export { fileCheckpoint } from './file-checkpoint.ts'
