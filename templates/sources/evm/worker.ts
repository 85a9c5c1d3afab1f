import { Worker } from 'tidemark'
import { alchemy, etherscan, evm } from 'tidemark/sources/evm'
import { realOrSimulated } from '@tidemark/simulators'

// Until ALCHEMY_URL is set in .env, the worker reads a simulated chain in this process.
const simulated = realOrSimulated('evm', { unless: 'ALCHEMY_URL', since: '{{now}}' })
// The transfers of one account; set your address. List any number of providers: if one fails, the next one continues.
const { transfers } = evm({
  address: '0x71de00000000000000000000000000000000c0de',
  providers: [alchemy({ name: 'alchemy', url: { secret: 'ALCHEMY_URL' } }), etherscan({ name: 'etherscan', apiKey: 'ETHERSCAN_KEY' })],
})

const worker = new Worker({ name: '{{name}}' })
worker.sync('transfers', { database: worker.database('transfers'), schedule: '1m', ...simulated(transfers) })

export default worker
