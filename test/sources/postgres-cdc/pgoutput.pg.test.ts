import pg from 'pg'
import replication from 'pg-logical-replication'
import { afterAll, beforeAll, describe, expect, inject, onTestFinished, test } from 'vitest'
import { formatLsn, parseLsn } from '../../../src/sources/postgres-cdc/lsn.ts'
import { parseMessage, UNCHANGED_TOAST, type Relation, type Tuple } from '../../../src/sources/postgres-cdc/pgoutput.ts'
import { CdcFixture } from './cdc-fixture.ts'

describe.skipIf(inject('postgresUrl') === '')('the messages of pgoutput', () => {
  let shop: CdcFixture
  beforeAll(async () => {
    shop = await CdcFixture.open()
  })
  afterAll(() => shop.close())

  test('are read as another reader of the same bytes reads them', async () => {
    await shop.exec(`create type mood as enum ('fine'); create table a (id int primary key, t text, m mood, big text); create table b (x int, y text); alter table b replica identity full;
      create publication p for table a, b; alter table a alter big set storage external`)
    await shop.client.query("select pg_create_logical_replication_slot('s', 'pgoutput')")
    await shop.exec("insert into a values (1, 'ünï 🌊', 'fine', repeat('x', 9000)), (2, null, null, '')")
    await shop.exec(
      "update a set t = 'other' where id = 1; update a set id = 3 where id = 2; delete from a where id = 3; insert into b values (1, 'p'), (1, null); update b set y = 'q'; delete from b; truncate a, b",
    )
    const { rows } = await shop.client.query<{ data: Buffer }>(
      "select data from pg_logical_slot_peek_binary_changes('s', null, null, 'proto_version', '1', 'publication_names', 'p')",
    )
    const parser = pg.types.getTypeParser(23)
    pg.types.setTypeParser(23, (text) => text)
    onTestFinished(() => pg.types.setTypeParser(23, parser))
    const oracle = new replication.PgoutputPlugin({ protoVersion: 1, publicationNames: ['p'] })
    const relations = new Map<number, Relation>()
    const kinds = new Set<string>()
    for (const { data } of rows) {
      const ours = parseMessage(data)
      if (ours.kind === 'relation') relations.set(ours.relation.oid, ours.relation)
      kinds.add(ours.kind)
      expect(shownAs(ours, relations)).toEqual(shownAs(oracle.parse(data), relations))
    }
    expect([...kinds].toSorted()).toEqual([
      'begin',
      'commit',
      'delete',
      'insert',
      'other',
      'relation',
      'truncate',
      'update',
    ])
  })

  test('a message of an unknown kind is refused, not skipped', () => {
    expect(() => parseMessage(Buffer.from('Z'))).toThrow(/message type "Z"/)
  })
})

/** Both readers' words brought to one. */
function shownAs(message: any, relations: ReadonlyMap<number, Relation>): unknown {
  if ('tag' in message) {
    const { tag } = message as { tag: string }
    if (tag === 'begin') return { kind: tag, lsn: parseLsn(message['commitLsn']) }
    if (tag === 'commit') return { kind: tag, lsn: parseLsn(message['commitEndLsn']) }
    if (tag === 'relation')
      return {
        kind: tag,
        names: [
          message['schema'],
          message['name'],
          ...message['columns'].map(({ name, typeOid }: { name: string; typeOid: number }) => [name, typeOid]),
        ],
      }
    if (tag === 'truncate') return { kind: tag, of: message['relations'].map(({ name }: { name: string }) => name) }
    if (tag === 'type' || tag === 'origin') return { kind: 'other' }
    const plain = (tuple: object | null): object | null =>
      tuple === null ? null : Object.fromEntries(Object.entries(tuple).filter(([, value]) => value !== undefined))
    return {
      kind: tag,
      of: message['relation'].name,
      row: plain(message['new'] ?? null),
      old: plain(message['old'] ?? null) ?? plain(message['key'] ?? null),
    }
  }
  const named = (oid: number, tuple: Tuple | null, isKey = false): object | null =>
    tuple === null
      ? null
      : Object.fromEntries(
          relations
            .get(oid)!
            .columns.map(({ name }, index) => [name, tuple[index]] as const)
            .filter(([, value]) => value !== UNCHANGED_TOAST && !(isKey && value === null)),
        )
  switch (message.kind) {
    case 'begin':
      return { kind: 'begin', lsn: parseLsn(formatLsn(message.commitLsn)) }
    case 'commit':
      return { kind: 'commit', lsn: message.endLsn }
    case 'relation':
      return {
        kind: 'relation',
        names: [
          message.relation.schema,
          message.relation.name,
          ...message.relation.columns.map(({ name, typeOid }: { name: string; typeOid: number }) => [name, typeOid]),
        ],
      }
    case 'truncate':
      return { kind: 'truncate', of: message.relationOids.map((oid: number) => relations.get(oid)!.name) }
    case 'insert':
      return {
        kind: 'insert',
        of: relations.get(message.relationOid)!.name,
        row: named(message.relationOid, message.row),
        old: null,
      }
    case 'update':
      return {
        kind: 'update',
        of: relations.get(message.relationOid)!.name,
        row: { ...named(message.relationOid, message.oldRow), ...named(message.relationOid, message.row) },
        old: named(message.relationOid, message.oldRow) ?? named(message.relationOid, message.oldKey, true),
      }
    case 'delete': {
      const isWhole = relations.get(message.relationOid)!.name === 'b'
      return {
        kind: 'delete',
        of: relations.get(message.relationOid)!.name,
        row: null,
        old: named(message.relationOid, message.old, !isWhole),
      }
    }
    default:
      return { kind: 'other' }
  }
}
