import type { Parameter, Transaction } from './connection.ts'

/**
 * Deletes what is no longer needed, `where` with the tenant as $1, and returns the number of rows. Rows that another transaction
 * has locked are left to the next call: waiting for them, in an order that another one does not keep, could end in a deadlock.
 */
export function deleteUnlocked(transaction: Transaction, table: string, where: string, ...parameters: Parameter[]): Promise<number> {
  return transaction.run(
    `delete from tidemark.${table} where ctid = any(array(select ctid from tidemark.${table} where tenant_id = $1 and ${where} for update skip locked))`,
    transaction.tenant, ...parameters,
  )
}
