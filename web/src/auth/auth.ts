import { ErrorResponse, InMemoryWebStorage, type User, UserManager, WebStorageStateStore } from 'oidc-client-ts';
import { ApiError } from '~/api/errors';
import type { Config } from '~/config';

/** Set while somebody is signed in at this browser, so that a new tab asks the issuer silently before it shows a button. */
const hint = 'quern.signed-in';

type Journey = { returnTo: string };

/** The outcome of coming back from the issuer. */
export type Arrival = { returnTo: string; reason?: string };

/**
 * Signs people in with a code and PKCE. Tokens live in memory alone: a reload asks the issuer again, with prompt=none, in the page
 * itself, because issuers are third parties to frames.
 */
export class Auth {
  readonly #manager: UserManager;
  #user: User | null = null;
  #renewal: Promise<User> | null = null;

  constructor(config: Config) {
    this.#manager = new UserManager({
      authority: config.issuer,
      client_id: config.clientId,
      scope: config.scope,
      redirect_uri: `${location.origin}/callback`,
      post_logout_redirect_uri: `${location.origin}/`,
      response_type: 'code',
      userStore: new WebStorageStateStore({ store: new InMemoryWebStorage() }),
      stateStore: new WebStorageStateStore({ store: sessionStorage }),
      automaticSilentRenew: false,
      monitorSession: false,
      loadUserInfo: false,
    });
  }

  get signedIn(): boolean {
    return this.#user !== null;
  }

  /** Whether it is worth asking the issuer without showing anything. */
  get remembered(): boolean {
    return localStorage.getItem(hint) !== null;
  }

  /** Leaves the page for the issuer. It does not return. */
  async signIn(returnTo: string, how: 'visible' | 'silent' = 'visible'): Promise<never> {
    const state: Journey = { returnTo };
    await this.#manager.signinRedirect(how === 'silent' ? { state, prompt: 'none' } : { state });
    return new Promise<never>(() => undefined);
  }

  /** Redeems what the issuer sent to /callback. */
  async arrive(): Promise<Arrival> {
    try {
      this.#user = await this.#manager.signinRedirectCallback();
      localStorage.setItem(hint, 'yes');
      return { returnTo: local((this.#user.state as Journey | undefined)?.returnTo) };
    } catch (cause) {
      // Only the issuer ends a session. A page that is left while it redeems a code fails too, and the next one must continue.
      if (!(cause instanceof ErrorResponse)) return { returnTo: '/', reason: 'interrupted' };
      localStorage.removeItem(hint);
      const returnTo = local((cause.state as Journey | undefined)?.returnTo);
      // These mean that there is no session to continue, which is no fault.
      const quiet = ['login_required', 'interaction_required', 'consent_required', 'account_selection_required'].includes(cause.error ?? '');
      return quiet ? { returnTo } : { returnTo, reason: cause.error ?? 'interrupted' };
    }
  }

  /** A token that is good for a request. */
  async token(): Promise<string> {
    if (!this.#user) throw ended();
    const left = this.#user.expires_in;
    const user = left !== undefined && left < 15 ? await this.renewed() : this.#user;
    return user.access_token;
  }

  /** Gets a new token, because the service refused the last one. Requests that ask at the same time share one renewal. */
  async renew(): Promise<void> {
    await this.renewed();
  }

  private renewed(): Promise<User> {
    this.#renewal ??= this.redeem().finally(() => {
      this.#renewal = null;
    });
    return this.#renewal;
  }

  private async redeem(): Promise<User> {
    try {
      if (!this.#user?.refresh_token) throw ended();
      const user = await this.#manager.signinSilent();
      if (!user) throw ended();
      this.#user = user;
      return user;
    } catch (cause) {
      if (cause instanceof TypeError) throw new ApiError({ code: 'NETWORK', message: 'The identity provider could not be reached.' });
      sessionEnded();
      throw ended();
    }
  }

  /** Ends the session here and at the issuer. */
  async signOut(): Promise<void> {
    localStorage.removeItem(hint);
    const user = this.#user;
    this.#user = null;
    const metadata = await this.#manager.metadataService.getMetadata().catch(() => undefined);
    if (!metadata?.end_session_endpoint) {
      location.assign('/signin?reason=signed_out');
      return;
    }
    await this.#manager.signoutRedirect(user?.id_token ? { id_token_hint: user.id_token } : {});
  }
}

function ended(): ApiError {
  return new ApiError({ code: 'UNAUTHORIZED', status: 401, message: 'Your session has ended.' });
}

let current: Auth | undefined;

export function setAuth(value: Auth): void {
  current = value;
}

export function auth(): Auth {
  if (!current) throw new Error('auth is used before the page has started');
  return current;
}

/** An address of this site. Whatever leads elsewhere becomes the start page. */
export function local(address: string | undefined): string {
  if (!address) return '/';
  try {
    const url = new URL(address, location.origin);
    if (url.origin !== location.origin || url.pathname === '/callback' || url.pathname === '/signin') return '/';
    return url.pathname + url.search + url.hash;
  } catch {
    return '/';
  }
}

const listeners = new Set<() => void>();

/** Tells when a session could not be renewed. */
export function onSessionEnd(listener: () => void): () => void {
  listeners.add(listener);
  return () => listeners.delete(listener);
}

function sessionEnded(): void {
  for (const listener of listeners) listener();
}
