/* A work store that is nothing but lists in memory: the model that the contract suites compare the real
 * stores with. It decides nothing, so it can only be wrong where it reads or writes. */
#ifndef TESTS_MODEL_MODEL_H
#define TESTS_MODEL_MODEL_H

#define WORK_MODEL "model:" /* its location, once it is registered */

void work_model_register(void);

#endif
