import { Command } from 'commander'
import { SyncError, type Store } from '../contract/index.ts'
import { systemClock } from '../platform/clock.ts'
import { isDeadHolder } from '../platform/holder.ts'
import { holdingOf, type Holding } from '../registry/holding.ts'
import { actorName } from './actor.ts'
import type { Act } from './cli.ts'
import { grouped } from './counts.ts'
import { printable } from './printable.ts'
import { RefusedError } from './report-error.ts'
import { table } from './table.ts'
import { targetDocument, withStoreFlags, type TargetFlags } from './target.ts'
import { readingEveryTenant } from './with-store.ts'

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

export const tenantsList: Act<[TargetFlags]> = async (cli, flags) => {
  await readingEveryTenant(cli, flags, async (target, store) => {
    const tenants: Holding[] = []
    for (const tenant of (await store?.tenants()) ?? []) tenants.push(await holdingOf(store!.forTenant(tenant)))
    if (cli.terminal.json) return cli.terminal.document({ ...targetDocument(target), tenants })
    if (tenants.length === 0) return cli.terminal.print('Nothing was kept for any tenant yet.')
    cli.terminal.print(...table(['TENANT', 'SYNCS', 'DATABASES', 'ROWS', 'CHANGES', 'SEALED BY'], tenants.map((found) => [
      printable(found.tenant), ...[found.syncs, found.databases, found.rows, found.changes].map(grouped), found.wrappedBy.join(', ') || '–',
    ])))
  })
}

export const tenantsDelete: Act<[string, TargetFlags & { readonly yes?: boolean }]> = async (cli, tenant, flags) => {
  const { terminal } = cli
  await readingEveryTenant(cli, flags, async (target, all) => {
    if (all === null || !(await all.tenants()).includes(tenant)) throw new SyncError('ARGUMENT_INVALID', `There is no tenant ${JSON.stringify(tenant.slice(0, 80))} in ${target.store}.`)
    const store = all.forTenant(tenant)
    const plan = await holdingOf(store)
    if (flags.yes !== true) {
      terminal.remark(...planLines(plan))
      throw new RefusedError('CONFIRMATION_NEEDED', `Nothing was changed: tenant ${tenant} (${target.store}) is erased only with --yes.`, plan)
    }
    const { syncs, entries, remains } = await erase(store)
    if (terminal.json) return terminal.document({ ...targetDocument(target), erased: tenant, syncs, entries, remains })
    terminal.print(`Tenant ${tenant} is erased: ${grouped(syncs)} syncs, ${grouped(entries)} entries of the database, and the keys of its states.`)
    if (remains !== null) terminal.remark(`Bytes of it may still be in ${remains}.`)
  })
}

/** What a killed run still holds is taken from it first. */
async function erase(store: Store): Promise<Extract<Awaited<ReturnType<Store['erase']>>, { kind: 'erased' }>> {
  for (;;) {
    const answer = await store.erase({ actor: actorName(), at: systemClock.now() })
    if (answer.kind === 'erased') return answer
    const { ref, by, until } = answer
    if (!isDeadHolder(by)) throw new SyncError('LEASE_HELD', `${ref.sync} (worker ${ref.worker}) is being run by ${by}, until ${new Date(until).toISOString()} at least. Nothing was erased.`)
    const taken = await store.acquire(ref, { holder: by, ttlMs: 1, at: systemClock.now(), evict: by })
    if (taken.kind === 'acquired') await store.release(taken.lease)
  }
}

function planLines({ tenant, syncs, databases, rows, changes, wrappedBy }: Holding): string[] {
  return [
    `The plan for tenant ${tenant}:`,
    `  erases   ${grouped(rows)} rows of ${grouped(databases)} databases, their views and the log (${grouped(changes)} changes)`,
    `           the state, cycles, quarantine and audit of ${grouped(syncs)} syncs`,
    '           its webhooks and its keys of the served feed',
    `           the data keys${wrappedBy.length === 0 ? '' : ` wrapped by ${wrappedBy.join(', ')}`}: a backup of its states opens no more`,
    '  keeps    its name, its sequence, and one entry of a new audit that says who did this',
    '',
  ]
}
