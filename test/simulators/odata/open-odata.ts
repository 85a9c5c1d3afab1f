import { serve } from '../../../simulators/src/kit/serve.ts'
import type { SimulatorPorts } from '../../../simulators/src/kit/simulator.ts'
import { portsOf } from '../ports.ts'
import { OdataSimulator, SERVICE_PATH, type OdataOptions } from '../../../simulators/src/odata/simulator.ts'
import { standardParser } from './standard-parser.ts'

export interface ServedOdata extends AsyncDisposable {
  /** The root of the service, with a trailing slash. */
  readonly url: string
  readonly odata: OdataSimulator
  close(): Promise<void>
}

/**
 * The service on a loopback socket with its own port. Without ports, its clock is stopped. A third-party parser reads
 * the queries.
 */
export async function openOdata(options: OdataOptions, ports: SimulatorPorts = portsOf()): Promise<ServedOdata> {
  const odata = new OdataSimulator(ports, { parser: standardParser, ...options })
  const served = await serve(odata)
  return { url: `${served.url}${SERVICE_PATH}/`, odata, close: served.close, [Symbol.asyncDispose]: served.close }
}
