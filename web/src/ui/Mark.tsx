/** The mark: a millstone with its furrows. */
export function Mark({ size = 24 }: { size?: number }) {
  return (
    <svg width={size} height={size} viewBox="0 0 32 32" aria-hidden className="shrink-0 text-accent">
      <circle cx="16" cy="16" r="15" fill="currentColor" />
      <g fill="none" className="stroke-on-accent" strokeWidth="2.2" strokeLinecap="round">
        <circle cx="16" cy="16" r="3.4" />
        <path d="M16 4.6c3.4 1.2 5 3.4 5.4 6M27.4 16c-1.2 3.4-3.4 5-6 5.4M16 27.4c-3.4-1.2-5-3.4-5.4-6M4.6 16c1.2-3.4 3.4-5 6-5.4" />
      </g>
    </svg>
  );
}
