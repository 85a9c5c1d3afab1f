import { odata, type CursorOptions, type ODataSource } from '../../../src/sources/odata/source.ts'
import { OdataSimulator, SERVICE_PATH, type OdataOptions } from '../../../simulators/src/odata/simulator.ts'
import { standardParser } from '../../simulators/odata/standard-parser.ts'
import { VendorFixture } from '../vendor-fixture.ts'

export const URL_OF_SERVICE = `https://erp.example${SERVICE_PATH}`

/** A set with a numeric key, one with a key of two parts, and one whose cursor is a day. */
const SETS = {
  Orders: {
    key: ['Id'],
    properties: {
      Id: 'Edm.Int64',
      Name: 'Edm.String',
      Price: 'Edm.Decimal',
      Gone: 'Edm.Boolean',
      At: 'Edm.DateTimeOffset',
    },
  },
  Lines: {
    key: ['Order', 'No'],
    properties: { Order: 'Edm.String', No: 'Edm.Int32', Name: 'Edm.String', At: 'Edm.DateTimeOffset' },
  },
  Items: { key: ['Id'], properties: { Id: 'Edm.Guid', Name: 'Edm.String', At: 'Edm.DateTimeOffset' } },
  Days: { key: ['Id'], properties: { Id: 'Edm.Int32', Name: 'Edm.String', On: 'Edm.Date' } },
} as const
const { Days: _, ...TIMED } = SETS
/** Version 2 has no days; its moments have no zone. */
const SETS_OF_2 = {
  ...TIMED,
  Orders: { ...SETS.Orders, properties: { ...SETS.Orders.properties, At: 'Edm.DateTime' } },
} as const

export type SetName = keyof typeof SETS

/** A service of either version, its source, and an engine to read it with. */
export class ODataFixture {
  readonly stage: VendorFixture<OdataSimulator>
  readonly service: OdataSimulator
  readonly source: ODataSource
  readonly version: 2 | 4

  private constructor(stage: VendorFixture<OdataSimulator>, version: 2 | 4) {
    this.stage = stage
    this.service = stage.vendor
    this.version = version
    this.source = odata({ url: URL_OF_SERVICE })
  }

  static async open(version: 2 | 4, options: Partial<OdataOptions> = {}, seed = 1): Promise<ODataFixture> {
    const stage = await VendorFixture.open(
      (ports) =>
        new OdataSimulator(ports, {
          parser: standardParser,
          version,
          sets: version === 4 ? SETS : SETS_OF_2,
          ...options,
        }),
      seed,
    )
    return new ODataFixture(stage, version)
  }

  /** Followed by `At`. */
  follow(set: SetName, options: Partial<CursorOptions> = {}): this {
    this.stage.track(this.source.entitySet(set, { cursor: set === 'Days' ? 'On' : 'At', ...options }))
    return this
  }

  get now(): number {
    return this.stage.scene.clock.now()
  }

  /** A moment as a service writes it, with `ticks` of 100 ns behind the millisecond. */
  moment(ms = this.now, ticks = 0): string {
    const digits = `${new Date(ms).toISOString().slice(0, 23)}${String(ticks).padStart(4, '0')}`
    return `${digits}${this.version === 4 ? 'Z' : ''}`
  }

  order(
    id: number | string,
    name: string,
    { at = this.moment(), gone = false, afterMs = 0 }: { at?: string; gone?: boolean; afterMs?: number } = {},
  ): void {
    this.service.put('Orders', { Id: String(id), Name: name, Price: '10.50', Gone: gone, At: at }, { afterMs })
  }

  /** Adds entities, by default all with one timestamp. */
  orders(count: number, stepMs = 0, firstMs = this.now - 60_000): void {
    for (let id = 1; id <= count; id++) this.order(id, `n${id}`, { at: this.moment(firstMs + id * stepMs) })
  }

  /** The entities of the service, as they should be stored. */
  truth(set: SetName = 'Orders'): Record<string, unknown> {
    const { key } = SETS[set]
    return Object.fromEntries(
      this.service.truth(set).map((row) => {
        const record = this.version === 4 ? row : { ...row, At: shownIn2(String(row['At'])) }
        return [key.length === 1 ? String(row[key[0]]) : JSON.stringify(key.map((name) => String(row[name]))), record]
      }),
    )
  }

  rows(): Promise<Record<string, unknown>> {
    return this.stage.rows()
  }

  /** The requests since the last call, decoded, without those for the metadata. */
  asked(): string[] {
    return this.service.urls
      .splice(0)
      .map((url) => decodeURIComponent(url.slice(url.indexOf(SERVICE_PATH) + SERVICE_PATH.length)))
      .filter((text) => text !== '/$metadata')
  }

  close(): Promise<void> {
    return this.stage.close()
  }
}

/** Version 2 shows milliseconds, and takes moments without a zone for UTC. */
function shownIn2(at: string): string {
  return `${at.slice(0, 23).replace(/\.?0*Z?$/, '')}Z`.replace(
    /\.(\d+)Z$/,
    (_, digits: string) => `.${digits.padEnd(3, '0')}Z`,
  )
}
