import { defineProvider } from '../define-provider.ts'

/** The vendor is described by the program; see `connect.providers`. */
export default defineProvider({
  name: 'basic',
  title: 'User and password',
  documentation: 'https://www.rfc-editor.org/rfc/rfc7617',
  source: null,
  form: {
    steps: ['Create a user for the integration with read access only.'],
    fields: { user: { label: 'User name' }, password: { label: 'Password', isSecret: true } },
    auth: { kind: 'basic', user: 'user', password: 'password' },
  },
  account: { url: '{base_url}/me', id: 'id', label: 'name' },
})
