import { Command } from 'commander'
import { SyncError, type Store } from '../../contract/index.ts'
import { systemClock } from '../../platform/clock.ts'
import { isHolderGone } from '../../platform/lease-holder.ts'
import { readTenantUsage, type TenantUsage } from '../../registry/tenant-usage.ts'
import { actorName } from '../kit/actor.ts'
import type { VerbAction } from '../cli.ts'
import { formatNumber } from '../kit/counts.ts'
import { toPrintable } from '../kit/printable.ts'
import { RefusedError } from '../kit/report-error.ts'
import { formatTable } from '../kit/table.ts'
import { targetDocument, withStoreFlags, type TargetFlags } from '../kit/target.ts'
import { withExistingStoreOfAnyTenant } from '../kit/with-store.ts'

export function tenantsVerbs(): { list: Command; delete: Command } {
  return {
    list: withStoreFlags(new Command('list'))
      .summary('list the tenants of this store')
      .description(
        'Lists the tenants of this store, the amount of data of each, and the encryption keys that wrap their data keys.',
      ),
    delete: withStoreFlags(new Command('delete'))
      .summary('erase all data of a tenant')
      .description(
        'Permanently erases all data of a tenant: rows, change log, states, API keys, webhooks, quarantine and audit log. Its data keys are deleted too, so backed-up state can no longer be decrypted. The deletion is recorded as the first entry of a new audit log.',
      )
      .argument('<tenant>', 'the tenant, from `tidemark tenants list`')
      .option('--yes', 'erase the tenant instead of showing the plan'),
  }
}

export const tenantsList: VerbAction<[TargetFlags]> = async (cli, flags) => {
  await withExistingStoreOfAnyTenant(cli, flags, async (target, store) => {
    const tenants: TenantUsage[] = []
    if (store !== null)
      for (const tenant of await store.tenants()) tenants.push(await readTenantUsage(store.forTenant(tenant)))
    if (cli.terminal.json) return cli.terminal.printDocument({ ...targetDocument(target), tenants })
    if (tenants.length === 0) return cli.terminal.print('The store has no tenants yet.')
    cli.terminal.print(
      ...formatTable(
        ['TENANT', 'SYNCS', 'DATABASES', 'ROWS', 'CHANGES', 'KEYS'],
        tenants.map((found) => [
          toPrintable(found.tenant),
          ...[found.syncs, found.databases, found.rows, found.changes].map(formatNumber),
          found.wrappedBy.join(', ') || '–',
        ]),
      ),
    )
  })
}

export const tenantsDelete: VerbAction<[string, TargetFlags & { readonly yes?: boolean }]> = async (
  cli,
  tenant,
  flags,
) => {
  const { terminal } = cli
  await withExistingStoreOfAnyTenant(cli, flags, async (target, all) => {
    if (all === null || !(await all.tenants()).includes(tenant))
      throw new SyncError(
        'ARGUMENT_INVALID',
        `${target.storeLabel} has no tenant ${JSON.stringify(tenant.slice(0, 80))}. List the tenants with \`tidemark tenants list\`.`,
      )
    const store = all.forTenant(tenant)
    const plan = await readTenantUsage(store)
    if (flags.yes !== true) {
      terminal.remark(...formatPlan(plan))
      throw new RefusedError(
        'CONFIRMATION_NEEDED',
        `Nothing was changed. Add --yes to erase tenant ${tenant} (${target.storeLabel}).`,
        plan,
      )
    }
    const { syncs, entries, remains } = await eraseTenant(store)
    if (terminal.json)
      return terminal.printDocument({ ...targetDocument(target), erased: tenant, syncs, entries, remains })
    terminal.print(
      `Erased tenant ${tenant}: ${formatNumber(syncs)} syncs, ${formatNumber(entries)} stored entries and its data keys.`,
    )
    if (remains !== null) terminal.remark(`Some bytes of its data may remain in ${remains}.`)
  })
}

/** Takes over and releases the leases of killed runs first. */
async function eraseTenant(
  store: Store,
): Promise<Extract<Awaited<ReturnType<Store['eraseTenant']>>, { kind: 'erased' }>> {
  for (;;) {
    const answer = await store.eraseTenant({ actor: actorName(), at: systemClock.now() })
    if (answer.kind === 'erased') return answer
    const { ref, holder, expiresAt } = answer
    if (!isHolderGone(holder))
      throw new SyncError(
        'LEASE_HELD',
        `Nothing was erased: ${ref.sync} (worker ${ref.worker}) is being run by ${holder} until at least ${new Date(expiresAt).toISOString()}.`,
      )
    const acquired = await store.acquire(ref, { holder, ttlMs: 1, at: systemClock.now(), evictHolder: holder })
    if (acquired.kind === 'acquired') await store.release(acquired.lease)
  }
}

function formatPlan({ tenant, syncs, databases, rows, changes, wrappedBy }: TenantUsage): string[] {
  return [
    `Plan for tenant ${tenant}:`,
    `  erases   ${formatNumber(rows)} rows of ${formatNumber(databases)} databases, their views and the change log (${formatNumber(changes)} changes)`,
    `           the state, run history, quarantine and audit log of ${formatNumber(syncs)} syncs`,
    '           its webhooks and its API keys',
    `           the data keys${wrappedBy.length === 0 ? '' : ` wrapped by ${wrappedBy.join(', ')}`}: backed-up state can no longer be decrypted`,
    '  keeps    its name, its sequence, and one entry of a new audit log that names the actor',
    '',
  ]
}
