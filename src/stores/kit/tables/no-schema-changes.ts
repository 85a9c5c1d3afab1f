import type { SchemaStore } from '../../../contract/index.ts'
import { invalid } from './change-columns.ts'

/** Of a store that cannot change columns once they are there; its `SchemaInfo.locks` is null. */
export const NO_SCHEMA_CHANGES: Pick<SchemaStore, 'beginSchemaChange' | 'advanceSchemaChange'> = {
  beginSchemaChange: () => Promise.reject(invalid('This store cannot change columns.')),
  advanceSchemaChange: () => Promise.resolve(null),
}
