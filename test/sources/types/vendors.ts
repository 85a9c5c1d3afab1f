import type { Execute, JsonObject } from '../../../src/contract/index.ts'
import { airtable } from '../../../src/sources/airtable/source.ts'
import { odata } from '../../../src/sources/odata/source.ts'
import { salesforce } from '../../../src/sources/salesforce/source.ts'
import { servicenow } from '../../../src/sources/servicenow/source.ts'
import {
  AirtableSimulator,
  createSimulatorFetch,
  SalesforceSimulator,
  ServicenowSimulator,
  type ApiSimulator,
  type Fields,
  type VendorSimulator,
} from '../../../simulators/src/index.ts'
import { OdataSimulator, SERVICE_PATH, type OdataOptions } from '../../../simulators/src/odata/simulator.ts'
import { portsOf } from '../../simulators/ports.ts'
import { DATABASE, type OpenCase, type TypeCase } from './type-case.ts'

function listing(simulator: ApiSimulator, execute: Execute<any>, rest: Pick<OpenCase, 'truth' | 'change'>): OpenCase {
  return {
    declare(worker) {
      worker.sync('things', { database: worker.database(DATABASE), mode: 'replace', execute })
      return { first: 'things', second: 'things' }
    },
    fetch: createSimulatorFetch(simulator),
    close: async () => {},
    ...rest,
  }
}

/** Two records that swap their fields in the change. */
function swapped(
  simulator: VendorSimulator,
  type: string,
  key: string,
  execute: Execute<any>,
  fields: readonly [Fields, Fields],
): OpenCase {
  const ids = fields.map((each) => simulator.create(type, each))
  return listing(simulator, execute, {
    truth: () => Object.fromEntries(simulator.truth(type).map((record) => [String(record[key]), record as JsonObject])),
    async change() {
      for (const [n, id] of ids.entries()) simulator.update(type, id, fields[1 - n]!)
    },
  })
}

const AT = Date.UTC(2026, 0, 31, 12)

const SALESFORCE = {
  Name: 'string',
  Phone: 'phone',
  Site: 'url',
  Email: 'email',
  Notes: 'textarea',
  Industry: 'picklist',
  Interests: 'multipicklist',
  Pick: 'combobox',
  Secret: 'encryptedstring',
  OwnerId: 'reference',
  Active: 'boolean',
  NumberOfEmployees: 'int',
  AnnualRevenue: 'currency',
  Score: 'double',
  Share: 'percent',
  Founded: 'date',
  LastCall: 'datetime',
  Opens: 'time',
  BillingAddress: 'address',
  Place: 'location',
  OldValue: 'anyType',
  Body: 'base64',
} as const

const NONE_OF_SALESFORCE = Object.fromEntries(Object.keys(SALESFORCE).map((name) => [name, null]))

const SERVICENOW = {
  number: 'string',
  active: 'boolean',
  state: 'integer',
  opened_at: 'glide_date_time',
  due_on: 'glide_date',
  due: 'due_date',
  worked: 'glide_duration',
  cost: 'decimal',
  price: 'currency',
  size: 'longint',
  done: 'percent_complete',
  caller: 'reference',
  notes: 'journal_input',
} as const

const EDM = {
  Id: ['Edm.Int64', '1', '9007199254740993'],
  Name: ['Edm.String', '2026-01-31', ''],
  Yes: ['Edm.Boolean', true, false],
  Count: ['Edm.Int32', 2_147_483_647, -1],
  Price: ['Edm.Decimal', '1.50', '-12345678901234567.00'],
  Ratio: ['Edm.Double', 0.1, 3],
  Single: ['Edm.Single', 0.5, -2],
  Byte: ['Edm.Byte', 255, 0],
  Small: ['Edm.Int16', -32_768, 7],
  Tiny: ['Edm.SByte', -128, 127],
  Uid: ['Edm.Guid', '7d444840-9dc0-11d1-b245-5ffdce74fad2', '00000000-0000-0000-0000-000000000000'],
} as const

/** Records with properties that only one version has. */
function odataCase(
  version: 2 | 4,
  extra: Readonly<Record<string, readonly [string, string, string | null]>>,
  shownAs: Record<string, (value: string) => string>,
  types: TypeCase['types'],
): TypeCase {
  const samples: Record<string, readonly [string, ...Array<string | number | boolean | null>]> = { ...EDM, ...extra }
  return {
    name: `OData ${version}`,
    key: ['Id'],
    types: {
      Id: 'decimal',
      Name: 'text',
      Yes: 'boolean',
      Count: 'bigint',
      Price: 'decimal',
      Ratio: 'double',
      Single: 'double',
      Byte: 'bigint',
      Small: 'bigint',
      Tiny: 'bigint',
      Uid: 'uuid',
      ...types,
    },
    async open() {
      const properties = Object.fromEntries(Object.entries(samples).map(([name, [type]]) => [name, type]))
      const simulator = new OdataSimulator(portsOf(), {
        version,
        sets: { Things: { key: ['Id'], properties } } as unknown as OdataOptions['sets'],
      })
      const rowOf = (id: number, from: number): Fields =>
        Object.fromEntries(Object.entries(samples).map(([name, values]) => [name, values[name === 'Id' ? id : from]!]))
      let rows = [rowOf(1, 1), rowOf(2, 2)]
      const put = (): void => rows.forEach((row) => simulator.put('Things', row as never))
      put()
      return listing(simulator, odata({ url: `https://erp.example${SERVICE_PATH}` }).listing('Things').execute, {
        truth: () =>
          Object.fromEntries(
            rows.map((row) => [
              String(row['Id']),
              Object.fromEntries(
                Object.entries(row).map(([name, value]) => [
                  name,
                  value !== null && shownAs[name] !== undefined ? shownAs[name](String(value)) : value,
                ]),
              ) as JsonObject,
            ]),
          ),
        async change() {
          rows = [rowOf(1, 2), rowOf(2, 1)]
          put()
        },
      })
    },
  }
}

export const VENDOR_CASES: readonly TypeCase[] = [
  {
    name: 'Salesforce',
    key: ['Id'],
    types: {
      Id: 'text',
      CreatedDate: 'timestamp',
      SystemModstamp: 'timestamp',
      LastModifiedDate: 'timestamp',
      IsDeleted: 'boolean',
      Name: 'text',
      Phone: 'text',
      Site: 'text',
      Email: 'text',
      Notes: 'text',
      Industry: 'text',
      Interests: 'text',
      Pick: 'text',
      Secret: 'text',
      OwnerId: 'text',
      Active: 'boolean',
      NumberOfEmployees: 'bigint',
      AnnualRevenue: 'double',
      Score: 'double',
      Share: 'double',
      Founded: 'date',
      LastCall: 'timestamp',
      Opens: 'text',
      BillingAddress: 'json',
      Place: 'json',
      OldValue: 'json',
      Body: 'text',
    },
    async open() {
      const simulator = new SalesforceSimulator(portsOf(), { objects: { Account: SALESFORCE } })
      const { backfill } = salesforce({
        instanceUrl: 'https://example.my.salesforce.com',
        accessToken: 'TOKEN',
      }).object('Account')
      return swapped(simulator, 'Account', 'Id', backfill, [
        {
          ...NONE_OF_SALESFORCE,
          Name: '2026-01-31',
          Phone: '1',
          Site: 'https://example.com',
          Email: 'a@example.com',
          Notes: 'a\nb',
          Industry: 'Energy',
          Interests: 'A;B',
          Pick: 'x',
          Secret: '****',
          OwnerId: '0055g0000000001AAA',
          Active: true,
          NumberOfEmployees: 12,
          AnnualRevenue: 1_000_000,
          Score: 0.5,
          Share: 12.25,
          Founded: '2026-01-31',
          LastCall: AT,
          Opens: '12:00:00.000Z',
          BillingAddress: { city: 'Bergen', postalCode: null },
          Place: { latitude: 60.39, longitude: 5.32 },
          OldValue: 'before',
          Body: '/services/data/v60.0/sobjects/Attachment/1/Body',
        },
        { ...NONE_OF_SALESFORCE, Name: 'x', AnnualRevenue: 0.1, Score: 3, LastCall: AT + 1 },
      ])
    },
  },
  {
    name: 'ServiceNow',
    key: ['sys_id'],
    types: {
      sys_id: 'text',
      sys_created_on: 'datetime',
      sys_updated_on: 'datetime',
      sys_mod_count: 'decimal',
      number: 'text',
      active: 'text',
      state: 'decimal',
      opened_at: 'datetime',
      due_on: 'date',
      due: 'datetime',
      worked: 'text',
      cost: 'decimal',
      price: 'text',
      size: 'decimal',
      done: 'decimal',
      caller: 'text',
      notes: 'text',
    },
    async open() {
      const [own, inherited] = [Object.keys(SERVICENOW).slice(0, 6), Object.keys(SERVICENOW).slice(6)]
      const simulator = new ServicenowSimulator(portsOf(), {
        tables: { incident: [...own, ...inherited], task: inherited, base: [] },
        extends: { incident: 'task', task: 'base' },
        types: SERVICENOW,
      })
      const { backfill } = servicenow({
        instanceUrl: 'https://example.service-now.com',
        user: 'TOKEN',
        password: 'TOKEN',
      }).table('incident')
      const full = {
        number: '2026-01-31',
        active: 'true',
        state: '-5',
        opened_at: '2026-01-31 12:00:00',
        due_on: '2026-01-31',
        due: '2026-02-01 00:00:00',
        worked: '1970-01-01 00:05:00',
        cost: '1.50',
        price: 'USD;1.50',
        size: '9223372036854775807',
        done: '100',
        caller: '0123456789abcdef0123456789abcdef',
        notes: '',
      }
      return swapped(simulator, 'incident', 'sys_id', backfill, [
        full,
        Object.fromEntries(Object.keys(SERVICENOW).map((name) => [name, ''])),
      ])
    },
  },
  {
    name: 'Airtable',
    key: ['id'],
    types: { id: 'text', createdTime: 'timestamp', fields: 'json' },
    async open() {
      const simulator = new AirtableSimulator(portsOf(), { baseId: 'appX' })
      return swapped(simulator, 'Tasks', 'id', airtable({ baseId: 'appX', token: 'TOKEN' }).table('Tasks').execute, [
        { Name: 'a', Done: true, Tags: ['x'] },
        { Name: 'b', Count: 1.5 },
      ])
    },
  },
  odataCase(
    4,
    {
      At: ['Edm.DateTimeOffset', '2026-01-31T12:00:00Z', '2026-01-31T12:00:01Z'],
      On: ['Edm.Date', '2026-01-31', '1999-12-31'],
    },
    {},
    { At: 'timestamp', On: 'date' },
  ),
  odataCase(
    2,
    {
      At: ['Edm.DateTime', '2026-01-31T12:00:00', '2026-01-31T12:00:01'],
      Moment: ['Edm.DateTimeOffset', '2026-01-31T12:00:00Z', '1999-12-31T23:59:59Z'],
    },
    { At: (at) => `${at}Z`, Ratio: String, Single: String },
    { At: 'timestamp', Moment: 'timestamp', Ratio: 'text', Single: 'text' },
  ),
]
