import { describe, expect, test } from 'vitest'
import { createSimulatorFetch } from '../../simulators/src/kit/simulator-fetch.ts'
import type { ApiFault } from '../../simulators/src/kit/api-faults.ts'
import { RateWindow } from '../../simulators/src/kit/rate-window.ts'
import { serve } from '../../simulators/src/kit/serve.ts'
import { VersionedRecords } from '../../simulators/src/kit/versioned-records.ts'
import { SalesforceSimulator } from '../../simulators/src/salesforce/simulator.ts'
import { portsOf } from './ports.ts'

const PATH = '/services/data/v65.0/query?q=SELECT%20Id%20FROM%20Account'
const HEADERS = { authorization: 'Bearer t' }

function open() {
  const ports = portsOf()
  const simulator = new SalesforceSimulator(ports)
  for (let n = 0; n < 3; n++) simulator.create('Account')
  const fetch = createSimulatorFetch(simulator)
  return {
    ...ports,
    simulator,
    get: (init: RequestInit = {}) => fetch(`https://org.example${PATH}`, { headers: HEADERS, ...init }),
  }
}

describe('faults', () => {
  test('a connection that breaks in the middle rejects the body, with fetch and with a socket', async () => {
    const { simulator, get } = open()
    simulator.faults.plan({ kind: 'truncated' }, { times: 2 })
    await expect((await get()).text()).rejects.toThrow('terminated')
    await using server = await serve(simulator)
    await expect(
      fetch(`${server.url}${PATH}`, { headers: HEADERS }).then((response) => response.text()),
    ).rejects.toThrow('terminated')
    expect((await fetch(`${server.url}${PATH}`, { headers: HEADERS })).status).toBe(200)
  })

  test('a short body ends properly and is not JSON', async () => {
    const { simulator, get } = open()
    simulator.faults.plan({ kind: 'truncated', how: 'short' })
    await expect((await get()).json()).rejects.toThrow(SyntaxError)
  })

  test.each([
    [{ kind: 'server-error' }, 503],
    [{ kind: 'server-error', status: 502 }, 502],
    [{ kind: 'unauthorized' }, 401],
    [{ kind: 'rate-limit' }, 403],
    [{ kind: 'html' }, 200],
  ] as Array<[ApiFault, number]>)('%j answers %i', async (fault, status) => {
    const { simulator, get } = open()
    simulator.faults.plan(fault)
    const response = await get()
    expect(response.status).toBe(status)
    expect(response.headers.get('content-type')).toContain(fault.kind === 'html' ? 'text/html' : 'application/json')
    expect((await get()).status).toBe(200)
  })

  test('a slow response waits for the clock and is aborted with its caller', async () => {
    const { simulator, clock, get } = open()
    simulator.faults.plan({ kind: 'slow', ms: 5_000 }, { times: 2 })
    let answered = false
    const pending = get().then(() => (answered = true))
    await new Promise((resolve) => setImmediate(resolve))
    expect(answered).toBe(false)
    clock.advance(5_000)
    await pending
    const abort = new AbortController()
    const aborted = get({ signal: abort.signal })
    abort.abort(new Error('enough'))
    await expect(aborted).rejects.toThrow('enough')
  })

  test('a duplicated page is the previous response of the endpoint, whatever changed since', async () => {
    const { simulator, get } = open()
    const before = await (await get()).text()
    simulator.create('Account')
    simulator.faults.plan({ kind: 'duplicate-page' })
    expect(await (await get()).text()).toBe(before)
    expect(await (await get()).text()).not.toBe(before)
  })

  test('faults at a rate affect about their share of the requests, the same ones for the same seed', async () => {
    const run = async () => {
      const { simulator, get } = open()
      simulator.faults.injectAtRates([
        [{ kind: 'rate-limit' }, 0.2],
        [{ kind: 'server-error' }, 0.1],
      ])
      const statuses: number[] = []
      for (let n = 0; n < 200; n++) statuses.push((await get()).status)
      return statuses
    }
    const statuses = await run()
    expect(statuses.filter((status) => status === 403).length).toBeGreaterThan(20)
    expect(statuses.filter((status) => status === 503).length).toBeGreaterThan(5)
    expect(await run()).toEqual(statuses)
  })

  test('a planned fault waits for its matching request', async () => {
    const { simulator, get } = open()
    simulator.faults.plan({ kind: 'server-error' }, { on: (request) => request.url.includes('limits') })
    expect((await get()).status).toBe(200)
  })
})

describe('the date of a response', () => {
  test('comes from the clock of the simulator, with fetch and with a socket', async () => {
    const { simulator, clock, get } = open()
    clock.advance(90_000)
    expect((await get()).headers.get('date')).toBe('Thu, 01 Jan 2026 00:01:30 GMT')
    await using server = await serve(simulator)
    const response = await fetch(`${server.url}${PATH}`, { headers: HEADERS })
    expect(response.headers.get('date')).toBe('Thu, 01 Jan 2026 00:01:30 GMT')
  })
})

describe('versioned records', () => {
  test('keep every version, and a newer one that is visible first hides an older that becomes visible later', () => {
    const { clock, random } = portsOf()
    const table = new VersionedRecords({ clock, random })
    table.insert('t', '1', { n: 0 })
    table.lag = { share: 1, maxMs: 60_000 }
    table.update('t', '1', { n: 1 })
    table.lag = { share: 0, maxMs: 0 }
    clock.advance(1)
    table.update('t', '1', { n: 2 })
    expect(table.indexed('t').map((version) => version.fields['n'])).toEqual([2])
    clock.advance(60_000)
    expect(table.indexed('t').map((version) => version.fields['n'])).toEqual([2])
    expect(table.history('t', '1').map((version) => version.fields['n'])).toEqual([0, 1, 2])
  })

  test('hide a late record from indexed reads until its time, while the primary store has it at once', () => {
    const { clock, random } = portsOf()
    const table = new VersionedRecords({ clock, random }, { share: 1, maxMs: 5_000 })
    const { visibleAtMs } = table.insert('t', '1', {})
    expect([table.current('t').length, table.indexed('t').length]).toEqual([1, 0])
    clock.advance(visibleAtMs - clock.now() - 1)
    expect(table.indexed('t')).toEqual([])
    clock.advance(1)
    expect(table.indexed('t')).toHaveLength(1)
  })

  test('refuse to update a missing record', () => {
    const table = new VersionedRecords(portsOf())
    table.insert('t', '1', {})
    table.remove('t', '1')
    expect(() => table.update('t', '1', {})).toThrow('t 1 does not exist.')
    expect(() => table.remove('t', '2')).toThrow('t 2 does not exist.')
    expect(table.current('t')).toEqual([])
    expect(table.latest('t')).toHaveLength(1)
  })
})

describe('a rate window', () => {
  test('starts with its first request and opens again after its length', () => {
    const { clock } = portsOf()
    const window = new RateWindow(clock, { requests: 2, perMs: 1_000 })
    expect([window.take(), window.take(), window.take()]).toEqual([true, true, false])
    expect(window.resetAtMs).toBe(clock.now() + 1_000)
    clock.advance(999)
    expect(window.take()).toBe(false)
    clock.advance(1)
    expect([window.take(), window.remaining]).toEqual([true, 1])
  })
})
