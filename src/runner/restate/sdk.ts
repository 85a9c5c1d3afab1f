import { SyncError } from '../../contract/index.ts'

export type Sdk = typeof import('@restatedev/restate-sdk')

export async function loadSdk(): Promise<Sdk> {
  // Must run before the import: Node 20 lacks this function, and the SDK's calls would hang silently.
  if (typeof Promise.withResolvers !== 'function') Promise.withResolvers = withResolvers
  try {
    return await import('@restatedev/restate-sdk')
  } catch (cause) {
    throw new SyncError(
      'PACKAGE_UNFIT',
      'Running on Restate requires the package @restatedev/restate-sdk: npm install @restatedev/restate-sdk',
      { cause },
    )
  }
}

function withResolvers<T>(): PromiseWithResolvers<T> {
  const resolvers = {} as PromiseWithResolvers<T>
  resolvers.promise = new Promise<T>((resolve, reject) => Object.assign(resolvers, { resolve, reject }))
  return resolvers
}
