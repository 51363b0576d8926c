import { act } from 'react';
import { createRoot } from 'react-dom/client';
import { afterEach, beforeEach, expect, test, vi } from 'vitest';
import { say, Toasts } from './toast';

beforeEach(() => {
  vi.stubGlobal('IS_REACT_ACT_ENVIRONMENT', true);
  vi.useFakeTimers();
  // happy-dom has no popovers.
  HTMLElement.prototype.showPopover = vi.fn();
  HTMLElement.prototype.hidePopover = vi.fn();
});
afterEach(() => {
  vi.useRealTimers();
  vi.unstubAllGlobals();
});

test('toasts appear in the dialog that is open, and on the page when it closes', async () => {
  const host = document.createElement('div');
  const root = createRoot(host);
  const show = (dialog: boolean) =>
    act(() =>
      root.render(
        <>
          {dialog && (
            <dialog>
              <Toasts />
            </dialog>
          )}
          <Toasts key="page" />
        </>,
      ),
    );
  const texts = () => [...host.querySelectorAll('[role=status]')].map((place) => place.textContent);
  await show(false);
  expect(texts()).toEqual(['']);
  await act(() => say('one'));
  expect(texts()).toEqual(['one']);
  await show(true);
  expect(texts()).toEqual(['one', '']);
  await act(() => say('two'));
  expect(texts()).toEqual(['onetwo', '']);
  await show(false);
  expect(texts()).toEqual(['onetwo']);
  await act(() => vi.advanceTimersByTime(5001));
  expect(texts()).toEqual(['']);
  await act(() => root.unmount());
});

test('a dialog that is open from the start has the toasts', async () => {
  const host = document.createElement('div');
  const root = createRoot(host);
  await act(() =>
    root.render(
      <>
        <dialog>
          <Toasts />
        </dialog>
        <Toasts />
      </>,
    ),
  );
  await act(() => say('one'));
  expect([...host.querySelectorAll('[role=status]')].map((place) => place.textContent)).toEqual(['one', '']);
  await act(() => root.unmount());
});
