import { SyncError } from '../../contract/index.ts'

export function createTenantErasedError(tenant: string): SyncError {
  return new SyncError('TENANT_ERASED', `The tenant ${tenant} was erased.`)
}
