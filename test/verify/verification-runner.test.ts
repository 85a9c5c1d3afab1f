import { afterEach, beforeEach, expect, test } from 'vitest'
import type { VerificationReport } from '../../src/contract/index.ts'
import { VerificationRunner } from '../../src/verify/verification-runner.ts'
import { Worker } from '../../src/worker/worker.ts'
import { HOUR, MINUTE } from '../engine/engine-fixture.ts'
import { DATABASE, VerifyFixture } from './verify-fixture.ts'

let fixture: VerifyFixture
beforeEach(async () => void (fixture = await VerifyFixture.open()))
afterEach(() => fixture.scene.close())

function createRunner(options: Parameters<Worker['verify']>[1]): VerificationRunner {
  const worker = new Worker({ name: 'shop' })
  worker.verify(worker.database(DATABASE), options)
  const { runtime } = fixture.options()
  const secretsOf = () => runtime.secrets
  return new VerificationRunner({
    store: fixture.scene.store,
    sourceRuntime: { ...runtime, secretsOf, ownSecretsOf: secretsOf },
    holder: 'verify:one',
    isHolderGone: () => false,
    workers: [{ plans: () => [fixture.plan], verifications: worker.verifications() }],
  })
}

const reports = async (): Promise<Array<VerificationReport | null>> =>
  (await fixture.scene.store.verifications({ limit: 10 })).map(({ report }) => report)

test('a verification runs once per interval, from the first cycle on, and repairs if it is declared so', async () => {
  const runner = createRunner({ schedule: '1h', repair: true })
  runner.start()
  await fixture.scene.clock.advance(HOUR)
  expect(await reports()).toEqual([])
  const filling = fixture.fill(4)
  await filling
  await fixture.scene.clock.advance(MINUTE)
  expect(await reports()).toMatchObject([{ rows: 4, repaired: 0 }])
  fixture.shop.set('new', { v: 1 })
  await fixture.scene.clock.advance(HOUR - MINUTE)
  expect(await reports()).toMatchObject([{ repaired: 1 }, { repaired: 0 }])
  await fixture.scene.clock.advance(30 * MINUTE)
  expect(await reports()).toHaveLength(2)
  await runner.stop()
})

test.each([
  [{ schedule: 'sometimes' }, 'SCHEDULE_INVALID'],
  [{ budget: 0 }, 'VERIFICATION_INVALID'],
  [{ full: true, sample: 3 }, 'VERIFICATION_INVALID'],
  [{ repairs: true }, 'VERIFICATION_INVALID'],
  [{ ignore: 'seen' }, 'VERIFICATION_INVALID'],
])('worker.verify refuses %j with %s', (options, code) => {
  const worker = new Worker({ name: 'shop' })
  expect(() => worker.verify(worker.database(DATABASE), options as object)).toThrow(expect.objectContaining({ code }))
})

test('worker.verify refuses a database that the worker does not declare', () => {
  expect(() => new Worker({ name: 'shop' }).verify('things')).toThrow(
    expect.objectContaining({ code: 'DATABASE_UNKNOWN' }),
  )
})
