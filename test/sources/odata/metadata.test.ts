import { describe, expect, test } from 'vitest'
import { discover } from '../../../src/sources/odata/source.ts'
import { parseMetadata } from '../../../src/sources/odata/metadata.ts'
import { createSimulatorFetch } from '../../../simulators/src/index.ts'
import { ODataFixture, URL_OF_SERVICE } from './odata-fixture.ts'

const V4 = `<?xml version="1.0" encoding="utf-8"?>
<!-- <EntitySet Name="Commented" EntityType="shop.Order"/> -->
<edmx:Edmx Version="4.01" xmlns:edmx="http://docs.oasis-open.org/odata/ns/edmx"><edmx:DataServices>
<Schema Namespace="shop" Alias="self" xmlns="http://docs.oasis-open.org/odata/ns/edm">
  <TypeDefinition Name="Code" UnderlyingType="Edm.String"/>
  <ComplexType Name="Empty"/>
  <ComplexType Name="Address"><Property Name="Street" Type="Edm.String"/></ComplexType>
  <EntityType Name="Base" Abstract="true"><Key><PropertyRef Name="Id"/></Key><Property Name="Id" Type="Edm.Guid" Nullable="false"/><Property Name="ModifiedAt" Type="Edm.DateTimeOffset" Precision="7"/></EntityType>
  <EntityType Name="Order" BaseType="self.Base"><Property Name='Kind' Type="shop.Code"/><Property Name="Address" Type="self.Address"/><Property Name="Due" Type="Edm.Date"/>
    <NavigationProperty Name="Lines" Type="Collection(shop.Line)"/><Annotation Term="x"><Record><PropertyValue Property="Nope" String="&lt;Property Name=&quot;No&quot;/&gt;"/></Record></Annotation></EntityType>
  <EntityType Name="Line"><Key><PropertyRef Name="Order"/><PropertyRef Name="No"/></Key><Property Name="Order" Type="Edm.Guid"/><Property Name="No" Type="Edm.Int32"/></EntityType>
  <EntityType Name="View"><Property Name="A" Type="Edm.String"/></EntityType>
  <EntityContainer Name="All"><EntitySet Name="Orders" EntityType="shop.Order"><NavigationPropertyBinding Path="Lines" Target="Lines"/></EntitySet><EntitySet Name="Lines" EntityType="self.Line"/><EntitySet Name="Views" EntityType="shop.View"/><Singleton Name="Me" Type="shop.Order"/></EntityContainer>
</Schema></edmx:DataServices></edmx:Edmx>`

const V2 = `<edmx:Edmx Version="1.0" xmlns:edmx="http://schemas.microsoft.com/ado/2007/06/edmx" xmlns:m="m" xmlns:sap="s"><edmx:DataServices m:DataServiceVersion="2.0">
<Schema Namespace="API"><EntityType Name="AType"><Key><PropertyRef Name="Id"/></Key><Property Name="Id" Type="Edm.String"/>
<Property Name="CreatedOn" Type="Edm.DateTime" Precision="0"/><Property Name="LastChangeDate" Type="Edm.DateTime" sap:filterable="false"/><Property Name="LastChangeDateTime" Type="Edm.DateTimeOffset" Precision="7"/></EntityType>
<EntityContainer Name="C" m:IsDefaultEntityContainer="true"><EntitySet Name="A" EntityType="API.AType"/></EntityContainer></Schema></edmx:DataServices></edmx:Edmx>`

describe('what a service says of itself', () => {
  test('version 4: keys, properties of base types, aliases, types of its own', () => {
    const { version, entitySets: sets, getComplexType: complexType } = parseMetadata(V4)
    expect(version).toBe(4)
    expect([...sets.keys()]).toEqual(['Orders', 'Lines', 'Views'])
    const order = sets.get('Orders')!
    expect(order.key).toEqual(['Id'])
    expect([...order.properties.values()].map(({ name, type }) => `${name} ${type}`)).toEqual([
      'Id Edm.Guid',
      'ModifiedAt Edm.DateTimeOffset',
      'Kind Edm.String',
      'Address self.Address',
      'Due Edm.Date',
    ])
    expect(order.properties.get('ModifiedAt')).toMatchObject({ precision: 7 })
    expect(sets.get('Lines')!.key).toEqual(['Order', 'No'])
    expect(sets.get('Views')!.key).toEqual([])
    expect([...complexType('self.Address')!.properties.keys()]).toEqual(['Street'])
  })

  test('version 2', () => {
    const { version, entitySets: sets } = parseMetadata(V2)
    expect(version).toBe(2)
    expect(sets.get('A')!.properties.get('CreatedOn')).toMatchObject({ precision: 0, isSortable: true })
  })

  test.each([
    ['a document type, whatever is in it', '<!DOCTYPE x [<!ENTITY a "aaaa">]><Edmx Version="4.0"/>'],
    ['half a tag', '<Edmx Version="4.0"><Schema Namespace="a'],
    ['half a comment', '<Edmx Version="4.0"/><!-- '],
    ['attributes without values', '<Edmx Version>'],
    ['something else', '<html><body>Please log in</body></html>'],
    ['another version', '<Edmx Version="5.0"></Edmx>'],
    ['half of it', V4.slice(0, V4.indexOf('<EntityType Name="Line"'))],
    ['nothing', ''],
  ])('%s is refused', (_, xml) => {
    expect(() => parseMetadata(xml)).toThrow(expect.objectContaining({ code: 'SOURCE_INVALID' }))
  })

  test("types that are each other's base end", () => {
    const xml =
      '<Edmx Version="4.0"><Schema Namespace="N"><EntityType Name="A" BaseType="N.B"/><EntityType Name="B" BaseType="N.A"/><EntityContainer><EntitySet Name="As" EntityType="N.A"/></EntityContainer></Schema></Edmx>'
    expect(parseMetadata(xml).entitySets.get('As')!.key).toEqual([])
  })

  test('a long text is read in one go', () => {
    const long = `<Edmx Version="4.0">${'<a b="c">'.repeat(200_000)}${' '.repeat(200_000)}</Edmx>`
    expect(parseMetadata(long).entitySets.size).toBe(0)
    expect(() => parseMetadata(`<Edmx ${'a="b" '.repeat(200_000)}`)).toThrow(
      expect.objectContaining({ code: 'SOURCE_INVALID' }),
    )
  })
})

describe('RX2 discover', () => {
  const context = (fetch: typeof globalThis.fetch): Parameters<typeof discover>[1] => ({
    fetch,
    clock: { now: () => 0, sleep: () => new Promise(() => {}) },
    secrets: { get: (name) => name },
    signal: new AbortController().signal,
  })
  const answering =
    (xml: string): typeof fetch =>
    async () =>
      new Response(xml, { headers: { 'content-type': 'application/xml' } })

  test('lists entity sets with their keys, the cursor by its name, and what else could be one', async () => {
    const desk = await ODataFixture.open(4)
    expect(await discover({ url: URL_OF_SERVICE }, context(createSimulatorFetch(desk.service)))).toMatchObject([
      { id: 'Orders', key: ['Id'], candidates: ['At'] },
      { id: 'Lines', key: ['Order', 'No'], candidates: ['At'] },
      { id: 'Items' },
      { id: 'Days', candidates: ['On'] },
    ])
    await desk.close()
    expect(await discover({ url: URL_OF_SERVICE }, context(answering(V4)))).toEqual([
      { id: 'Orders', key: ['Id'], cursor: 'ModifiedAt', candidates: ['ModifiedAt', 'Due'] },
      { id: 'Lines', key: ['Order', 'No'], candidates: [] },
      { id: 'Views', key: [], candidates: [] },
    ])
  })

  test('leaves out what the service says it cannot sort or filter by', async () => {
    expect(await discover({ url: URL_OF_SERVICE }, context(answering(V2)))).toEqual([
      { id: 'A', key: ['Id'], cursor: 'LastChangeDateTime', candidates: ['CreatedOn', 'LastChangeDateTime'] },
    ])
  })
})
