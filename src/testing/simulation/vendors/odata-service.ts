import {
  OdataSimulator,
  ODATA_SERVICE_PATH,
  VendorSimulator,
  type ApiCall,
  type ApiFault,
  type Fields,
  type RecordVersion,
  type OdataRow,
  type SimulatorPorts,
  type VendorOptions,
} from '@tidemark/simulators'
import { required } from '../../../values/required.ts'

export const ORDERS = 'Orders'
export const ODATA_URL = `https://vendor.test${ODATA_SERVICE_PATH}`

export interface OdataServiceOptions extends VendorOptions {
  readonly version: 2 | 4
  /** Whether a deleted row stays, with `Gone` set, or is removed. */
  readonly keepsDeleted: boolean
  /** Timestamps are whole multiples of this. */
  readonly granularityMs: number
}

/** An OData service with one entity set, over records whose writes may become visible late. */
export class OdataService extends VendorSimulator {
  readonly #service: OdataSimulator
  readonly #options: OdataServiceOptions
  /** The version of each record that the service shows, by its serial number. */
  readonly #visibleSerials = new Map<string, number>()
  #records = 0

  constructor(ports: SimulatorPorts, options: OdataServiceOptions) {
    super(ports, options)
    this.#options = options
    const moment = options.version === 4 ? 'Edm.DateTimeOffset' : 'Edm.DateTime'
    const properties = { Id: 'Edm.String', Name: 'Edm.String', Gone: 'Edm.Boolean', At: moment } as const
    this.#service = new OdataSimulator(ports, {
      version: options.version,
      sets: { [ORDERS]: { key: ['Id'], properties } },
      pageSizeMax: options.pageSizeMax ?? Infinity,
    })
  }

  protected newId(): string {
    return `order ${String(++this.#records).padStart(5, '0')}`
  }

  /** As a reader sees it: timestamps of either version are instants. */
  protected render({ id, fields, modifiedAtMs, deleted }: RecordVersion): Fields {
    return { Id: id, Name: fields['Name'], Gone: deleted, At: this.#stamp(modifiedAtMs) }
  }

  protected respond(call: ApiCall): Promise<Response> {
    this.#publishVisible()
    const fault = faultOf(call)
    if (fault !== null) this.#service.faults.plan(fault)
    return this.#service.handle(call.request)
  }

  protected rateLimited(retryAfter: string | undefined): Response {
    return this.#refusal(429, { 'retry-after': retryAfter ?? '1' })
  }

  protected unauthorized(): Response {
    return this.#refusal(401, { 'www-authenticate': 'Bearer' })
  }

  protected serverError(status: number): Response {
    return this.#refusal(status, {})
  }

  #refusal(status: number, headers: Readonly<Record<string, string>>): Response {
    const body = JSON.stringify({ error: { code: String(status), message: 'Refused.' } })
    return new Response(body, { status, headers: { 'content-type': 'application/json', ...headers } })
  }

  #stamp(atMs: number): string {
    const { granularityMs, version } = this.#options
    const stamp = new Date(Math.floor(atMs / granularityMs) * granularityMs).toISOString()
    return version === 2 ? stamp.replace('.000Z', 'Z') : stamp
  }

  /** Passes the writes that are visible by now to the service. */
  #publishVisible(): void {
    for (const version of this.records.indexed(ORDERS)) {
      const { id, serial, deleted } = version
      const before = this.#visibleSerials.get(id)
      if (before === serial) continue
      this.#visibleSerials.set(id, serial)
      if (!deleted || this.#options.keepsDeleted) this.#service.put(ORDERS, this.#row(version))
      else if (before !== undefined) this.#service.remove(ORDERS, { Id: id })
    }
  }

  #row(version: RecordVersion): OdataRow {
    const { At, ...row } = this.render(version) as OdataRow
    return { ...row, At: this.#options.version === 4 ? required(At, 'At') : String(At).slice(0, -1) }
  }
}

function faultOf({ endFlagOverride: lie, shortPage, expiredToken }: ApiCall): ApiFault | null {
  if (lie !== undefined) return { kind: 'end-flag', value: lie }
  if (shortPage) return { kind: 'short-page' }
  return expiredToken ? { kind: 'expired-token' } : null
}
