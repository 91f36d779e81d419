import { BaseSequencer, type TestSpecification } from 'vitest/node';

/**
 * Starts the projects in the order of the configuration. Vitest's own order is that of their names,
 * so that a file that takes minutes may start last.
 */
export class ProjectOrder extends BaseSequencer {
  override async sort(files: TestSpecification[]): Promise<TestSpecification[]> {
    const names = this.ctx.projects.map(({ name }) => name);
    const placeOf = ({ project }: TestSpecification) => names.indexOf(project.name);
    return (await super.sort(files)).toSorted((one, other) => placeOf(one) - placeOf(other));
  }
}
