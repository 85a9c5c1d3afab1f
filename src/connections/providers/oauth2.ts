import { defineProvider } from '../define-provider.ts'

/** The vendor is described by the program; see `connect.providers`. */
export default defineProvider({
  name: 'oauth2',
  title: 'OAuth 2.0',
  documentation: 'https://www.rfc-editor.org/rfc/rfc6749',
  source: null,
  oauth: {
    authorizeUrl: '{base_url}/authorize',
    tokenUrl: '{base_url}/token',
    scopes: [],
    pkce: 'supported',
    clientAuth: 'basic',
    refreshTokens: 'optional',
    expiry: 'stated',
    revocation: { method: 'POST', url: '{base_url}/revoke', fields: { token: '{refresh_token}' } },
  },
  account: { url: '{base_url}/userinfo', id: 'sub', label: 'name' },
})
