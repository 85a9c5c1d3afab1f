import { Worker } from 'tidemark'
import { evm, rpc } from 'tidemark/sources/evm'

// The transfers of one account. Any number of nodes and indexers; when one fails, the next goes on where it was.
const { transfers } = evm({
  address: '0x0000000000000000000000000000000000000000',
  providers: [rpc({ name: 'node', url: 'http://127.0.0.1:8545' })],
})

const worker = new Worker({ name: '{{name}}' })
worker.sync('transfers', { database: worker.database('transfers'), schedule: '1m', ...transfers })

export default worker
