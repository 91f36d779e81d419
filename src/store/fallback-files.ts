import { DiskFailed, Locked } from '../core/errors/index.ts';

/** Called once when the disk starts to fail, and once after the last failure has ended. */
export type ReportDiskFailure = (event: 'failing' | 'recovered', error?: DiskFailed) => void;

/** The current failures of a disk, by name. */
export class DiskFailures {
  readonly #report: ReportDiskFailure;
  readonly #names = new Set<string>();

  constructor(report: ReportDiskFailure) {
    this.#report = report;
  }

  begin(name: string, error: DiskFailed): void {
    const isFirst = this.#names.size === 0;
    this.#names.add(name);
    if (isFirst) this.#report('failing', error);
  }

  end(name: string): void {
    if (this.#names.delete(name) && this.#names.size === 0) this.#report('recovered');
  }
}

/** One kind of content that the disk stores per interface. */
export interface Disk<T> {
  /** Distinguishes failures of this kind from those of others. */
  readonly kind: string;
  read(link: string): Promise<T | null>;
  write(link: string, value: T): Promise<void>;
  /** Returns the same text for the same content. */
  format(value: T): string;
}

interface Unsaved<T> {
  readonly value: T;
  /** The disk's content at the failed write. If it differs now, another process wrote since. */
  readonly base: string | null;
  readonly triedAt: number;
}

export interface FallbackContext {
  readonly failures: DiskFailures;
  /** Milliseconds of a monotonic clock. */
  now(): number;
  /** Runs work while no other process changes the disk. */
  alone(work: () => Promise<void>): Promise<void>;
}

/** Milliseconds between two attempts to write unsaved content. */
const retryEvery = 5_000;

/** The contents of a disk that may fail. Keeps unsaved content in memory, and retries the write. */
export class FallbackFiles<T> {
  readonly #disk: Disk<T>;
  readonly #context: FallbackContext;
  readonly #unsaved = new Map<string, Unsaved<T>>();
  /** The content of the disk at the last read. */
  readonly #last = new Map<string, T>();

  constructor(disk: Disk<T>, context: FallbackContext) {
    this.#disk = disk;
    this.#context = context;
  }

  /** Returns the newest content. If the disk is unreadable, returns the last one in memory. */
  async read(link: string): Promise<T | null> {
    try {
      const value = await this.#disk.read(link);
      return await this.overlay(link, value);
    } catch (error) {
      const value = this.recall(link, error);
      if (value === null) throw error;
      return value;
    }
  }

  /** Returns the newest content, for a caller that read `value` from the disk. */
  async overlay(link: string, value: T | null): Promise<T | null> {
    this.#context.failures.end(`read ${this.#disk.kind} ${link}`);
    this.#note(link, value);
    await this.#retry(link);
    return this.#unsaved.get(link)?.value ?? this.#last.get(link) ?? null;
  }

  /** Returns the last content after a failed read; null without one, or if not a DiskFailed. */
  recall(link: string, error: unknown): T | null {
    const value = this.#unsaved.get(link)?.value ?? this.#last.get(link) ?? null;
    if (!(error instanceof DiskFailed) || value === null) return null;
    this.#context.failures.begin(`read ${this.#disk.kind} ${link}`, error);
    return value;
  }

  /** Writes the content, or keeps it in memory. Replaces earlier unsaved content. */
  async write(link: string, value: T): Promise<void> {
    const unsaved = this.#unsaved.get(link);
    if (unsaved === undefined) return this.#attempt(link, value);
    this.#unsaved.set(link, { ...unsaved, value });
    await this.#retry(link);
  }

  /** True if the last write failed and no retry has succeeded. */
  isUnsaved(link: string): boolean {
    return this.#unsaved.has(link);
  }

  forget(link: string): void {
    this.#last.delete(link);
    this.#drop(link);
    this.#context.failures.end(`read ${this.#disk.kind} ${link}`);
  }

  /** The interfaces with content in memory. */
  links(): string[] {
    return [...new Set([...this.#last.keys(), ...this.#unsaved.keys()])];
  }

  async #retry(link: string): Promise<void> {
    const unsaved = this.#unsaved.get(link);
    const { now, alone } = this.#context;
    if (unsaved === undefined || now() - unsaved.triedAt < retryEvery) return;
    this.#unsaved.set(link, { ...unsaved, triedAt: now() });
    try {
      await alone(() => this.#save(link));
    } catch (error) {
      if (!(error instanceof DiskFailed || error instanceof Locked)) throw error;
    }
  }

  /** Writes the unsaved content, unless another process has written since. */
  async #save(link: string): Promise<void> {
    this.#note(link, await this.#disk.read(link));
    const unsaved = this.#unsaved.get(link);
    if (unsaved !== undefined) await this.#attempt(link, unsaved.value);
  }

  async #attempt(link: string, value: T): Promise<void> {
    try {
      await this.#disk.write(link, value);
      this.#last.set(link, value);
      this.#drop(link);
    } catch (error) {
      if (!(error instanceof DiskFailed)) throw error;
      const base = await this.#disk.read(link).catch(() => this.#last.get(link) ?? null);
      this.#unsaved.set(link, { value, base: this.#format(base), triedAt: this.#context.now() });
      this.#context.failures.begin(`write ${this.#disk.kind} ${link}`, error);
    }
  }

  #note(link: string, value: T | null): void {
    if (value === null) this.#last.delete(link);
    else this.#last.set(link, value);
    const unsaved = this.#unsaved.get(link);
    if (unsaved !== undefined && this.#format(value) !== unsaved.base) this.#drop(link);
  }

  #drop(link: string): void {
    this.#unsaved.delete(link);
    this.#context.failures.end(`write ${this.#disk.kind} ${link}`);
  }

  #format(value: T | null): string | null {
    return value === null ? null : this.#disk.format(value);
  }
}
