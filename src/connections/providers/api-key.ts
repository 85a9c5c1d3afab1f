import { defineProvider } from '../define-provider.ts'

/** The vendor is described by the program; see `connect.providers`. */
export default defineProvider({
  name: 'api-key',
  title: 'API key',
  documentation: 'https://www.rfc-editor.org/rfc/rfc6750',
  source: null,
  form: {
    steps: ['Create an API key with read access in the settings of your account, and copy it.'],
    fields: { api_key: { label: 'API key', isSecret: true } },
    auth: { kind: 'header', header: 'authorization', field: 'api_key', prefix: 'Bearer ' },
  },
  account: { url: '{base_url}/me', id: 'id', label: 'name' },
})
