import { describe, expect, test } from 'vitest'
import { buildWorker } from '../../src/config/manifest/manifest.ts'
import { planColumns } from '../../src/transforms/column-rules.ts'
import { required } from '../../src/values/required.ts'

const STREAM = `connector: rest
config: { base_url: "https://api.example.com" }
streams:
  - id: crm.people
    key: [id]
    options: { path: /people, page: { kind: none } }
`

async function refusal(rules: string): Promise<string> {
  return buildWorker('tidemark.yaml', 'tidemark.yaml', {}, `${STREAM}${rules}`).then(
    () => 'accepted',
    (error: Error) => error.message,
  )
}

describe('the column rules of a stream', () => {
  test('are those of its database', async () => {
    const rules = `    select: [id, email, phone, iban, ssn, amount, address.city]
    drop: [address.city.zip]
    rename: { amount: cents }
    cast: { amount: bigint }
    hash: [email]
    mask: { phone: 4, ssn: "***" }
    encrypt: [iban]
`
    const worker = await buildWorker('tidemark.yaml', 'tidemark.yaml', {}, STREAM + rules)
    const [database] = required(worker.plans()[0], 'plan').databases
    expect(database?.columns?.fingerprint).toBe(
      planColumns({
        select: ['id', 'email', 'phone', 'iban', 'ssn', 'amount', 'address.city'],
        drop: ['address.city.zip'],
        rename: { amount: 'cents' },
        cast: { amount: 'bigint' },
        hash: ['email'],
        mask: { phone: 4, ssn: '***' },
        encrypt: ['iban'],
      })?.fingerprint,
    )
  })

  test('do not contain `select` where the source reads only those fields', async () => {
    const manifest = (more: string): string => `connector: sql
config: { url: "sqlite:shop.db" }
streams:
  - { id: shop.people, key: [id], mode: full_refresh, select: [id, name], options: { table: people }${more} }
`
    const columnsOf = async (more: string): Promise<unknown> =>
      (await buildWorker('tidemark.yaml', 'tidemark.yaml', {}, manifest(more))).plans()[0]?.databases[0]?.columns
    expect(await columnsOf('')).toBeUndefined()
    expect(await columnsOf(', hash: [name]')).toMatchObject({ select: null, protect: [{ kind: 'hash', path: 'name' }] })
  })

  test.each([
    ['    hsah: [email]\n', 'tidemark.yaml:7:5: streams.0: unknown field "hsah". Did you mean "hash"?'],
    ['    cast: { amount: bigitn }\n', 'tidemark.yaml:7:21: streams.0.cast.amount: it must be one of '],
    ['    hash: email\n', 'tidemark.yaml:7:11: streams.0.hash: it must be a list.'],
    ['    mask: { phone: -4 }\n', 'tidemark.yaml:7:20: streams.0.mask.phone: '],
    [
      '    drop: [email]\n    hash: [email]\n',
      'tidemark.yaml:8:11: crm.people: Database "crm.people": columns.hash: email has no effect, because `drop` removes email.',
    ],
    [
      '    encrypt: [email]\n    mask: { email: 2 }\n',
      'tidemark.yaml:7:14: crm.people: Database "crm.people": columns.encrypt: email is also in `mask`; a value can be replaced only once.',
    ],
    ['    map: { version: 1 }\n', 'tidemark.yaml:7:5: streams.0: unknown field "map".'],
  ])('with a mistake: %j', async (rules, message) => {
    expect(await refusal(rules)).toContain(message)
  })
})
