export { describeStore, runStoreCase } from './describe-store.ts'
export type { DescribeStoreOptions, TestRunner } from './describe-store.ts'
export { storeCases } from './store-cases/index.ts'
export type { StoreCase, StoreHarness, StoreSupport } from './store-cases/harness.ts'
