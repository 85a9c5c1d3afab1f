import { expect, test } from 'vitest'
import { parseMetadata } from '../../../src/sources/odata/metadata.ts'
import { toRecord } from '../../../src/sources/odata/record.ts'

const metadata = (version: string): ReturnType<typeof parseMetadata> =>
  parseMetadata(`<Edmx Version="${version}"><Schema Namespace="N">
  <ComplexType Name="Inner"><Property Name="At" Type="Edm.DateTime"/><Property Name="Text" Type="Edm.String"/></ComplexType>
  <EntityType Name="T"><Property Name="At" Type="Edm.DateTime"/><Property Name="Off" Type="Edm.DateTimeOffset"/><Property Name="Text" Type="Edm.String"/><Property Name="In" Type="N.Inner"/></EntityType>
  <EntityContainer><EntitySet Name="Ts" EntityType="N.T"/></EntityContainer></Schema></Edmx>`)

test('what a service says about a record is not part of it, at any depth', () => {
  const four = metadata('4.0')
  expect(
    toRecord(
      {
        '@odata.etag': 'W/"1"',
        '@odata.id': 'Ts(1)',
        'Text@odata.type': '#String',
        'Text@OData.Community.Display.V1.FormattedValue': 'x',
        '@type': '#N.T',
        Text: 'a@b',
        In: { '@odata.type': '#N.Inner', Text: 'x' },
        List: [{ '@odata.type': '#N.Inner', Text: 'y' }, 1, null],
      },
      four.entitySets.get('Ts'),
      four,
    ),
  ).toEqual({ Text: 'a@b', In: { Text: 'x' }, List: [{ Text: 'y' }, 1, null] })
  const two = metadata('1.0')
  expect(
    toRecord(
      {
        __metadata: { etag: 'x' },
        Lines: { __deferred: { uri: 'x' } },
        Text: 'a',
        In: { __metadata: { type: 'N.Inner' }, Text: 'b' },
      },
      two.entitySets.get('Ts'),
      two,
    ),
  ).toEqual({ Text: 'a', In: { Text: 'b' } })
})

test('moments of version 2 are instants in UTC, and texts that only look like one stay', () => {
  const two = metadata('1.0')
  const look = '/Date(0)/'
  expect(
    toRecord(
      {
        At: '/Date(1759404045000)/',
        Off: '/Date(1759404045123+0060)/',
        Text: look,
        In: { At: '/Date(-1)/', Text: look },
        Own: look,
      },
      two.entitySets.get('Ts'),
      two,
    ),
  ).toEqual({
    At: '2025-10-02T11:20:45Z',
    Off: '2025-10-02T11:20:45.123Z',
    Text: look,
    In: { At: '1969-12-31T23:59:59.999Z', Text: look },
    Own: '1970-01-01T00:00:00Z',
  })
  expect(toRecord({ At: '/Date(99999999999999999)/' }, two.entitySets.get('Ts'), two)).toEqual({
    At: '/Date(99999999999999999)/',
  })
  const four = metadata('4.0')
  expect(toRecord({ At: look }, four.entitySets.get('Ts'), four)).toEqual({ At: look })
})
