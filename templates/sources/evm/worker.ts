import { Worker } from 'tidemark'
import { alchemy, etherscan, evm } from 'tidemark/sources/evm'
import { realOrSimulated } from 'tidemark/testing'

// Without ALCHEMY_URL in .env a simulated chain answers, inside this process; with it, the real one.
const simulated = realOrSimulated('evm', { unless: 'ALCHEMY_URL', since: '{{now}}' })
// The transfers of one account; put yours here. Any number of nodes and indexers: when one fails, the next goes on where it was.
const { transfers } = evm({
  address: '0x71de00000000000000000000000000000000c0de',
  providers: [alchemy({ name: 'alchemy', url: { secret: 'ALCHEMY_URL' } }), etherscan({ name: 'etherscan', apiKey: 'ETHERSCAN_KEY' })],
})

const worker = new Worker({ name: '{{name}}' })
worker.sync('transfers', { database: worker.database('transfers'), schedule: '1m', ...simulated(transfers) })

export default worker
