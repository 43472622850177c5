import tseslint from "typescript-eslint";

export default tseslint.config(
  { ignores: ["dist/", "build/", "node_modules/"] },
  {
    files: ["src/**/*.ts", "test/**/*.ts"],
    extends: [tseslint.configs.strictTypeChecked],
    languageOptions: { parserOptions: { projectService: true } },
    rules: {
      // Numbers in messages are fine as they are.
      "@typescript-eslint/restrict-template-expressions": ["error", { allowNumber: true }],
      // An index that was checked just before is not undefined; the tests show it.
      "@typescript-eslint/no-non-null-assertion": "off",
      "@typescript-eslint/no-confusing-void-expression": ["error", { ignoreArrowShorthand: true }],
    },
  },
  {
    // The device runs in browsers that lack what the types promise, and under Node.
    files: ["src/{client,transport,store,device}.ts", "src/oblivious/transport.ts", "src/entries/*.ts", "test/**/*.ts"],
    rules: {
      "@typescript-eslint/no-unnecessary-condition": "off",
      "@typescript-eslint/no-misused-promises": ["error", { checksVoidReturn: false }],
      // `Client` is a class for its users, and a function that returns an object inside.
      "@typescript-eslint/no-extraneous-class": "off",
      "@typescript-eslint/no-unsafe-class-instance-assignment": "off",
      "@typescript-eslint/no-dynamic-delete": "off",
      // A DOMException is as good as an Error.
      "@typescript-eslint/prefer-promise-reject-errors": "off",
    },
  },
  {
    files: ["test/**/*.ts"],
    rules: {
      // node:test's `test` returns a promise that the runner itself waits for.
      "@typescript-eslint/no-floating-promises": "off",
      // Test vectors are JSON without types.
      "@typescript-eslint/no-explicit-any": "off",
      "@typescript-eslint/no-unsafe-argument": "off",
      "@typescript-eslint/no-unsafe-assignment": "off",
      "@typescript-eslint/no-unsafe-call": "off",
      "@typescript-eslint/no-unsafe-member-access": "off",
      "@typescript-eslint/no-unsafe-return": "off",
      "@typescript-eslint/restrict-plus-operands": "off",
      "@typescript-eslint/no-dynamic-delete": "off",
    },
  },
);
