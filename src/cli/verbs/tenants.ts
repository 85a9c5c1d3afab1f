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
      .summary('the tenants of this store')
      .description('Lists the tenants of this store, how much of each there is, and which keys of the ring their data keys are wrapped by.'),
    delete: withStoreFlags(new Command('delete'))
      .summary('erase everything of a tenant')
      .description('Erases everything of a tenant for good: rows, log, states, keys, webhooks, quarantine and audit. Its data keys go too, so that a backup of its states opens no more. That it was done is the first entry of a new audit.')
      .argument('<tenant>', 'the tenant, from `tidemark tenants list`')
      .option('--yes', 'do it; without, the plan is shown and nothing changes'),
  }
}

export const tenantsList: VerbAction<[TargetFlags]> = async (cli, flags) => {
  await withExistingStoreOfAnyTenant(cli, flags, async (target, store) => {
    const tenants: TenantUsage[] = []
    for (const tenant of (await store?.tenants()) ?? []) tenants.push(await readTenantUsage(store!.forTenant(tenant)))
    if (cli.terminal.json) return cli.terminal.printDocument({ ...targetDocument(target), tenants })
    if (tenants.length === 0) return cli.terminal.print('Nothing was kept for any tenant yet.')
    cli.terminal.print(...formatTable(['TENANT', 'SYNCS', 'DATABASES', 'ROWS', 'CHANGES', 'SEALED BY'], tenants.map((found) => [
      toPrintable(found.tenant), ...[found.syncs, found.databases, found.rows, found.changes].map(formatNumber), found.wrappedBy.join(', ') || '–',
    ])))
  })
}

export const tenantsDelete: VerbAction<[string, TargetFlags & { readonly yes?: boolean }]> = async (cli, tenant, flags) => {
  const { terminal } = cli
  await withExistingStoreOfAnyTenant(cli, flags, async (target, all) => {
    if (all === null || !(await all.tenants()).includes(tenant)) throw new SyncError('ARGUMENT_INVALID', `There is no tenant ${JSON.stringify(tenant.slice(0, 80))} in ${target.storeLabel}.`)
    const store = all.forTenant(tenant)
    const plan = await readTenantUsage(store)
    if (flags.yes !== true) {
      terminal.remark(...formatPlan(plan))
      throw new RefusedError('CONFIRMATION_NEEDED', `Nothing was changed: tenant ${tenant} (${target.storeLabel}) is erased only with --yes.`, plan)
    }
    const { syncs, entries, remains } = await eraseTenant(store)
    if (terminal.json) return terminal.printDocument({ ...targetDocument(target), erased: tenant, syncs, entries, remains })
    terminal.print(`Tenant ${tenant} is erased: ${formatNumber(syncs)} syncs, ${formatNumber(entries)} entries of the database, and the keys of its states.`)
    if (remains !== null) terminal.remark(`Bytes of it may still be in ${remains}.`)
  })
}

/** What a killed run still holds is taken from it first. */
async function eraseTenant(store: Store): Promise<Extract<Awaited<ReturnType<Store['eraseTenant']>>, { kind: 'erased' }>> {
  for (;;) {
    const answer = await store.eraseTenant({ actor: actorName(), at: systemClock.now() })
    if (answer.kind === 'erased') return answer
    const { ref, holder: by, expiresAt: until } = answer
    if (!isHolderGone(by)) throw new SyncError('LEASE_HELD', `${ref.sync} (worker ${ref.worker}) is being run by ${by}, until ${new Date(until).toISOString()} at least. Nothing was erased.`)
    const taken = await store.acquire(ref, { holder: by, ttlMs: 1, at: systemClock.now(), evictHolder: by })
    if (taken.kind === 'acquired') await store.release(taken.lease)
  }
}

function formatPlan({ tenant, syncs, databases, rows, changes, wrappedBy }: TenantUsage): string[] {
  return [
    `The plan for tenant ${tenant}:`,
    `  erases   ${formatNumber(rows)} rows of ${formatNumber(databases)} databases, their views and the log (${formatNumber(changes)} changes)`,
    `           the state, cycles, quarantine and audit of ${formatNumber(syncs)} syncs`,
    '           its webhooks and its keys of the served feed',
    `           the data keys${wrappedBy.length === 0 ? '' : ` wrapped by ${wrappedBy.join(', ')}`}: a backup of its states opens no more`,
    '  keeps    its name, its sequence, and one entry of a new audit that says who did this',
    '',
  ]
}
