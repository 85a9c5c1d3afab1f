import { importPackage } from '../../values/import-package.ts'

export type Sdk = typeof import('@restatedev/restate-sdk')

export async function loadSdk(): Promise<Sdk> {
  // Must run before the import: Node 20 lacks this function, and the SDK's calls would hang silently.
  if (typeof Promise.withResolvers !== 'function') Promise.withResolvers = withResolvers
  return importPackage('@restatedev/restate-sdk', 'Running on Restate needs', () => import('@restatedev/restate-sdk'))
}

function withResolvers<T>(): PromiseWithResolvers<T> {
  const resolvers = {} as PromiseWithResolvers<T>
  resolvers.promise = new Promise<T>((resolve, reject) => Object.assign(resolvers, { resolve, reject }))
  return resolvers
}
