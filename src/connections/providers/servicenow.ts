import { defineProvider } from '../define-provider.ts'

export default defineProvider({
  name: 'servicenow',
  title: 'ServiceNow',
  documentation: 'https://www.servicenow.com/docs/r/platform-security/authentication/authorization-workflow.html',
  source: 'servicenow',
  inputs: {
    instance_host: {
      label: 'Instance',
      hint: 'The host in the address of your instance.',
      example: 'acme.service-now.com',
      hostSuffixes: ['.service-now.com', '.servicenowservices.com'],
    },
  },
  oauth: {
    authorizeUrl: 'https://{instance_host}/oauth_auth.do',
    tokenUrl: 'https://{instance_host}/oauth_token.do',
    // Without a scope, a token has the access of its user.
    scopes: [],
    pkce: 'supported',
    clientAuth: 'form',
    refreshTokens: 'fixed',
    expiry: 'stated',
    revocation: {
      method: 'POST',
      url: 'https://{instance_host}/oauth_revoke_token.do',
      fields: { token: '{refresh_token}' },
    },
    isClientPerInstance: true,
  },
  form: {
    steps: [
      'In ServiceNow, create a user for the integration, with web service access only.',
      'Give the user a role with read access to the tables that you want to sync, and to sys_audit_delete.',
      'Enter the user name and the password below.',
    ],
    fields: { user: { label: 'User name' }, password: { label: 'Password', isSecret: true } },
    auth: { kind: 'basic', user: 'user', password: 'password' },
  },
  account: {
    url: 'https://{instance_host}/api/now/table/sys_user?sysparm_query=user_name%3Djavascript:gs.getUserName()&sysparm_fields=sys_id,user_name&sysparm_limit=1',
    id: 'result.0.sys_id',
    label: 'result.0.user_name',
  },
})
