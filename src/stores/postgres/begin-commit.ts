import type { Lease } from '../../contract/index.ts'
import { createKeyReplacedError } from '../kit/sealed-texts.ts'
import type { RegistryEntry } from '../kit/registry-rows.ts'
import { textArray } from './binary-arrays.ts'
import type { Transaction } from './connection.ts'
import type { Owner } from './sweep.ts'
import { toTable, type DatabaseRow, type Table } from './table.ts'

/** The facts that a commit depends on, read while the rows of the tenant and of the sync are locked. */
export interface CommitBasis {
  readonly tenant: { readonly sequence: number; readonly committed_at: number }
  /** Null when the lease is not the newest one. */
  readonly entry: RegistryEntry | null
  readonly owners: readonly Owner[]
  /** The tables of the databases that exist. */
  readonly known: ReadonlyMap<string, Table>
  /** The sync has records in quarantine. */
  readonly hasQuarantined: boolean
  /** Throws when a state was sealed with another key than the newest one. */
  checkSealingKey(used: string | null): void
}

/** The answer of the function. */
interface BasisJson {
  readonly tenant: CommitBasis['tenant']
  readonly entry: RegistryEntry | null
  readonly owners: ReadonlyArray<Omit<Owner, 'holdings'> & { readonly holdings: readonly number[] }> | null
  readonly databases: readonly DatabaseRow[] | null
  readonly hasQuarantined: boolean
  readonly newestKey: string | null
}

/** Invariant 3: fences off an old lease; see `findLeasedEntry` in kit/registry.ts. */
export async function beginCommit(
  transaction: Transaction,
  lease: Lease,
  databases: readonly string[],
): Promise<CommitBasis> {
  const { basis } = await transaction.one<{ basis: BasisJson }>(
    'select tidemark.begin_commit($1, $2, $3, $4::text[]) as basis',
    transaction.tenant,
    lease.ref.worker,
    lease.ref.sync,
    textArray(databases),
  )
  const { tenant, entry, owners, databases: found, hasQuarantined, newestKey } = basis
  return {
    tenant,
    entry: entry !== null && entry.epoch === lease.epoch && entry.holder === lease.holder ? entry : null,
    owners: (owners ?? []).map((owner) => ({ ...owner, holdings: new Set(owner.holdings) })),
    known: new Map((found ?? []).map((row) => [row.name, toTable(row)])),
    hasQuarantined,
    checkSealingKey: (used) => {
      if (used !== null && used !== newestKey) throw createKeyReplacedError(used)
    },
  }
}
