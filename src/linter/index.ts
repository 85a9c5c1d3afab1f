export { checkWorker } from './check-worker.ts'
export type { CheckOptions, SyncCheck, WorkerCheck } from './check-worker.ts'
export { FAULTS } from './findings.ts'
export type { FaultCode, Finding, Severity } from './findings.ts'
