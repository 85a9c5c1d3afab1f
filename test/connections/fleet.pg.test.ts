import { fork, type ChildProcess } from 'node:child_process'
import { once } from 'node:events'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { expect, inject, onTestFinished, test } from 'vitest'
import { buildCredentials } from '../../src/connections/build-credentials.ts'
import { addConnection } from '../../src/connections/manage-connections.ts'
import { openStore } from '../../src/stores/open-store.ts'
import { seededRandom } from '../../src/testing/store-cases/harness.ts'
import { buildPackage } from '../cli/package.ts'
import { createDatabase, dropDatabase } from '../setup/postgres-server.ts'
import { RotatingVendor, VENDOR_CLIENT } from './rotating-vendor.ts'

const setting = (name: string, fallback: number): number => Number(process.env[`TIDEMARK_FLEET_${name}`] ?? fallback)
const CONNECTIONS = setting('CONNECTIONS', 12)
const PROCESSES = setting('PROCESSES', 2)
const TOKEN_SECONDS = setting('TOKEN_SECONDS', 2)
const RUN_MS = setting('SECONDS', 6) * 1_000
/** Processes are killed (SIGKILL) at random; 0 to stop and start them in order instead. */
const KILL_EVERY_MS = setting('KILL_SECONDS', 0) * 1_000
const GRACE_MS = 40_000

test(
  `${CONNECTIONS} connections with rotating tokens and reuse detection in ${PROCESSES} processes lose no token`,
  {
    timeout: RUN_MS + GRACE_MS + 300_000,
  },
  async () => {
    const server = inject('postgresUrl')
    const url = await createDatabase(server)
    const vendor = await new RotatingVendor({ hasGrace: KILL_EVERY_MS > 0 }).start(TOKEN_SECONDS)
    const store = await openStore(url)
    const processes = new Map<number, ChildProcess>()
    onTestFinished(async () => {
      for (const child of processes.values()) child.kill('SIGKILL')
      await store.close()
      vendor.close()
      await dropDatabase(server, url)
    })
    const accounts = Array.from({ length: CONNECTIONS }, (_, n) => `t${n}`)
    const addedAt = performance.now()
    const addTimes: number[] = []
    for (const account of accounts) {
      const secrets = {
        refresh_token: await vendor.grant(account),
        token_url: `${vendor.url}/token`,
        client_id: VENDOR_CLIENT.clientId,
        client_secret: VENDOR_CLIENT.clientSecret,
      }
      const credentials = buildCredentials('crm', 'oauth', secrets)
      const before = performance.now()
      await addConnection(
        store.forTenant(account),
        { name: 'crm', provider: 'crm', credentials },
        { actor: 'test', at: 1 },
      )
      addTimes.push(performance.now() - before)
    }
    const place = buildPackage()
    const kills: number[] = []
    const start = async (slot: number): Promise<void> => {
      const child = fork(join(import.meta.dirname, 'fleet-process.mjs'), [place, url, vendor.url, '8'], {
        stdio: ['ignore', 'ignore', 'inherit', 'ipc'],
      })
      processes.set(slot, child)
      await Promise.race([once(child, 'message'), once(child, 'exit')])
    }
    await Promise.all(Array.from({ length: PROCESSES }, (_, slot) => start(slot)))
    const random = seededRandom(7)
    const endsAt = Date.now() + RUN_MS
    while (Date.now() < endsAt) {
      await sleep(Math.min(KILL_EVERY_MS === 0 ? RUN_MS / 3 : KILL_EVERY_MS * (0.5 + random()), endsAt - Date.now()))
      if (Date.now() >= endsAt) break
      const slot = Math.floor(random() * PROCESSES)
      const child = processes.get(slot)
      if (KILL_EVERY_MS > 0) kills.push(Date.now())
      child?.kill(KILL_EVERY_MS > 0 ? 'SIGKILL' : 'SIGTERM')
      if (child !== undefined && child.exitCode === null && child.signalCode === null) await once(child, 'exit')
      await start(slot)
    }
    // Every sync goes on after the last kill: its account is read again with a valid token.
    const readsBefore = new Map(vendor.reads)
    const deadline = Date.now() + GRACE_MS + TOKEN_SECONDS * 2_000
    const isStalled = (account: string): boolean => (vendor.reads.get(account) ?? 0) <= (readsBefore.get(account) ?? 0)
    while (accounts.some(isStalled) && Date.now() < deadline) await sleep(100)
    for (const child of processes.values()) child.kill('SIGTERM')

    const uses = new Map<string, number[]>()
    for (const { token, at } of vendor.uses) uses.set(token, [...(uses.get(token) ?? []), at])
    const repeated = [...uses.values()].filter((times) => times.length > 1)
    // A token may be sent again only if the process that received its answer was killed before it stored it.
    const unexplained = repeated.filter(
      ([first = 0, second = 0]) => !kills.some((at) => at >= first - 1_000 && at <= second),
    )
    const statuses = await Promise.all(
      accounts.map(async (account) => (await store.forTenant(account).connection('crm'))?.status),
    )
    const median = (times: readonly number[]): number =>
      times.toSorted((a, b) => a - b)[Math.floor(times.length / 2)] ?? 0
    const tenth = Math.max(1, Math.floor(addTimes.length / 10))
    console.info(
      `${CONNECTIONS} connections, ${PROCESSES} processes, ${kills.length} kills: ${vendor.uses.length} refreshes, ${repeated.length} sent again after a kill, ${vendor.refusals.length} refused; ` +
        `adding took ${median(addTimes.slice(0, tenth)).toFixed(1)} ms at first and ${median(addTimes.slice(-tenth)).toFixed(1)} ms at last (${((performance.now() - addedAt) / 1_000).toFixed(0)} s in all)`,
    )
    expect(unexplained).toEqual([])
    expect(vendor.refusals).toEqual([])
    expect(statuses.filter((status) => status !== 'active')).toEqual([])
    expect(accounts.filter(isStalled)).toEqual([])
    expect(vendor.uses.length).toBeGreaterThanOrEqual(
      CONNECTIONS * Math.max(1, Math.floor(RUN_MS / 1_000 / TOKEN_SECONDS / 2)),
    )
  },
)
