import { serve } from '../../../src/testing/simulators/kit/serve.ts'
import type { SimulatorPorts } from '../../../src/testing/simulators/kit/simulator.ts'
import { portsOf } from '../ports.ts'
import { OdataSimulator, SERVICE_PATH, type OdataOptions } from '../../../src/testing/simulators/odata/simulator.ts'
import { standardParser } from './standard-parser.ts'

export interface ServedOdata extends AsyncDisposable {
  /** The root of the service, with a slash at its end. */
  readonly url: string
  readonly odata: OdataSimulator
  close(): Promise<void>
}

/** The service behind a socket on the loopback address, on a port of its own. Without ports, its clock stands still. Queries are read by a parser that is not ours. */
export async function openOdata(options: OdataOptions, ports: SimulatorPorts = portsOf()): Promise<ServedOdata> {
  const odata = new OdataSimulator(ports, { parser: standardParser, ...options })
  const served = await serve(odata)
  return { url: `${served.url}${SERVICE_PATH}/`, odata, close: served.close, [Symbol.asyncDispose]: served.close }
}
