import type { SchemaStore } from '../../../contract/index.ts'
import { createInvalidSchemaChangeError } from './schema-change.ts'

/** For a store that cannot change existing columns; its `SchemaInfo.locks` is null. */
export const UNSUPPORTED_SCHEMA_CHANGES: Pick<SchemaStore, 'beginSchemaChange' | 'advanceSchemaChange'> = {
  beginSchemaChange: () => Promise.reject(createInvalidSchemaChangeError('This store cannot change columns.')),
  advanceSchemaChange: () => Promise.resolve(null),
}
