import { Command } from '../components/code.tsx'
import { Empty } from '../components/states.tsx'

export function WebhooksPage() {
  return (
    <>
      <h1>Webhooks</h1>
      <Empty title="Webhooks are managed in the terminal">
        <p>Every change is signed and sent, tried again when it fails, and kept when it cannot be delivered.</p>
        <Command label="Add a webhook" text="npx tidemark webhooks add https://example.com/hook" />
      </Empty>
    </>
  )
}
