import { expect, test, vi } from 'vitest'
import { kafka } from '../../../src/sources/kafka/source.ts'
import { contextOf } from '../sql/cases.ts'

vi.mock('kafkajs', () => {
  throw new Error("Cannot find package 'kafkajs'")
})

test('without its package, the Kafka source names the command that installs it', async () => {
  await expect(
    kafka({ brokers: ['127.0.0.1:1'] })
      .topic('t')
      .delta(undefined, contextOf()),
  ).rejects.toMatchObject({
    code: 'PACKAGE_UNFIT',
    message: expect.stringContaining('npm install kafkajs') as string,
  })
})
