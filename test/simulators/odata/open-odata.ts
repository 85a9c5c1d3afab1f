import { serve } from '../../../src/testing/simulators/kit/serve.ts'
import type { SimulatorPorts } from '../../../src/testing/simulators/kit/simulator.ts'
import { portsOf } from '../ports.ts'
import { OdataSimulator, SERVICE_PATH, type OdataOptions } from './simulator.ts'

export interface ServedOdata extends AsyncDisposable {
  /** The root of the service, with a slash at its end. */
  readonly url: string
  readonly odata: OdataSimulator
  close(): Promise<void>
}

/** The service behind a socket on the loopback address, on a port of its own. Without ports, its clock stands still. */
export async function openOdata(options: OdataOptions, ports: SimulatorPorts = portsOf()): Promise<ServedOdata> {
  const odata = new OdataSimulator(ports, options)
  const served = await serve(odata)
  return { url: `${served.url}${SERVICE_PATH}/`, odata, close: served.close, [Symbol.asyncDispose]: served.close }
}
